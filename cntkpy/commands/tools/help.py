"""`cntkpy help NAME`: what an action, a reader, a section, a parameter, a function of networks or a finding is."""

from __future__ import annotations

import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cntkpy.cntk_config.base.files import read_input
from cntkpy.cntk_config.base.kinds import Rule
from cntkpy.cntk_config.declare import Parameter
from cntkpy.commands.catalogue.topics import Topic, all_names, default_text, find_parameters, find_topics, topics

EXIT_UNKNOWN = 2
PAGES = (
    Path(__file__).parents[3] / "docs" / "findings",
    *(Path(base, "share", "cntkpy", "findings") for base in (sysconfig.get_path("data"), site.getuserbase())),
)
"""The pages of findings in a checkout, in an environment, in the packages of a user."""
_FENCE = re.compile(r'```(?:\w+)?(?: title="(.*?)")?$')
_LINK = re.compile(r"\[([^\]\[]*)\]\([^()]*\)")


def help_on(name: str | None) -> int:
    """Print the help on a name, or all sections; return the exit status."""
    if name is None:
        sys.stdout.write(overview())
        return 0
    parts = list(explanations(name))
    if parts:
        sys.stdout.write("\n".join(parts))
        return 0
    from cntkpy.cntk_config.base.diagnostics import suggestion

    hint = suggestion(name, all_names())
    print(f"error: nothing is called '{name}'" + (f"\n  help: {hint}" if hint else ""), file=sys.stderr)
    return EXIT_UNKNOWN


def overview() -> str:
    """Return all sections, one a line."""
    rows = [(topic.name, topic.meaning) for topic in topics()]
    lines = [f"  {name:28} {meaning[:90]}\n" for name, meaning in rows]
    return "Sections and actions; `cntkpy help NAME` explains more, also any parameter or function:\n" + "".join(lines)


def explanations(name: str) -> Iterator[str]:
    """Yield all that is called so: sections, parameters, functions, commands of MEL, findings."""
    for topic in find_topics(name):
        yield section_text(topic)
    parameters = sorted(find_parameters(name), key=_rank)
    if parameters:
        yield "".join(_parameter_text(topic, parameter) for topic, parameter in parameters)
    yield from _network(name)
    from cntkpy.cntk_config.base.kinds import find_rule

    rule = find_rule(name)
    if rule is not None:
        yield f"{rule.code}: {rule.title} ({rule.severity})\n  repair   {rule.fix}\n{_page(rule)}"


def _page(rule: Rule) -> str:
    """Return the section of a rule on the pages of findings, as plain text; the wheel brings the pages."""
    page = next((path for folder in PAGES if (path := folder / f"{rule.page}.md").is_file()), None)
    if page is None:
        return f"  docs     {rule.link}\n"
    pattern = rf"^## {rule.code}: [^\n]*\n(.*?)(?=^<a id=|\Z)"
    section = re.search(pattern, read_input(page).decode(), re.MULTILINE | re.DOTALL)
    return f"\n{_plain(section[1].strip())}\n" if section is not None else ""


def _plain(markdown: str) -> str:
    """Return a text of Markdown for a terminal: code is indented, links and marks are gone."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        if fence := _FENCE.match(line):
            in_code = not in_code
            lines += [f"{fence[1]}:"] if fence[1] else []
        elif in_code:
            lines.append(f"    {line}" if line else "")
        else:
            lines.append(_LINK.sub(r"\1", line).replace("**", "").replace("`", ""))
    return "\n".join(lines)


def _rank(entry: tuple[Topic, Parameter[Any]]) -> tuple[bool, bool]:
    """Return the order of parameters with one name: what a training reads first, what is ignored last."""
    topic, parameter = entry
    return parameter.help.startswith("Ignored"), topic.name != "SGD"


def section_text(topic: Topic) -> str:
    """Return a section with all its parameters."""
    lines = [f"{topic.name} ({topic.kind}): {topic.meaning}"]
    if topic.example:
        lines += ["", *(f"    {line}" for line in topic.example.split("\n"))]
    lines.append("")
    for parameter in topic.declared.parameters():
        lines.append(f"  {parameter.name:34} {parameter.type.name}, {_default(parameter)}")
        lines.append(f"      {parameter.help}")
    return "\n".join(lines) + "\n"


def _default(parameter: Parameter[Any]) -> str:
    text = default_text(parameter)
    return text if text == "required" else "no default" if text == "-" else f"default {text}"


def _parameter_text(topic: Topic, parameter: Parameter[Any]) -> str:
    aliases = f" (also {', '.join(parameter.aliases)})" if parameter.aliases else ""
    where = f"{topic.name}" + ("" if parameter.own else ", or further out")
    rows = (("in", where), ("type", parameter.type.name), ("default", default_text(parameter)))
    return (
        f"{parameter.name}{aliases}: {parameter.help}\n" + "".join(f"  {name:8} {text}\n" for name, text in rows) + "\n"
    )


def _network(name: str) -> Iterator[str]:
    from cntkpy.networks import nodes
    from cntkpy.networks.mel.commands import find

    kind = nodes.find(name)
    if kind is not None:
        lines = [f"{kind.name} (function of networks): {kind.meaning or kind.unsupported or ''}"]
        if not kind.unsupported:
            lines.append(f"  usage    {kind.usage()}")
        if kind.aliases:
            lines.append(f"  also     {', '.join(kind.aliases)}")
        if kind.formula:
            lines.append(f"  formula  {kind.formula}")
        if kind.example:
            lines.append("  example  " + kind.example.replace("\n", "\n           "))
        lines += [f"  {option.name}: {option.meaning}" for option in kind.options]
        yield "\n".join(lines) + "\n"
    yield from _brain_script(name)
    command = find(name)
    if command is not None:
        text = f"{command.name} (command of MEL): {command.meaning}\n  usage    {command.usage}\n"
        yield f"{text}  example  {command.example}\n"


def _brain_script(name: str) -> Iterator[str]:
    """Functions of BrainScript of that name, letter case and namespaces aside."""
    from cntkpy.networks.builders.brainscript.reference import documented

    every = documented()
    for value in every.values():
        if name.lower() not in (value.name.lower(), value.name.rpartition(".")[2].lower()):
            continue
        shown = every.get(value.alias, value)
        if shown.usage:
            also = f"  alias    of {shown.name}\n" if value.alias else ""
            yield f"{value.name} (function of BrainScript): {shown.meaning}\n  usage    {shown.usage}\n{also}"
