"""The findings of `cntkpy check`: one table of stable codes, and the findings themselves.

A finding is a `Diagnostic` with the code of its kind. Codes never change their meaning; new ones are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cntk_config.base.diagnostics import Diagnostic, printable

PAGE = "docs/findings.md"
SEVERITIES = ("error", "warning", "hint")
_COMMENT = re.compile(r"#\s*cntkpy:\s*ignore(?P<file>-file)?(?:\s*=\s*(?P<codes>[A-Za-z0-9, ]+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    """One kind of finding."""

    code: str
    title: str
    severity: str
    kinds: tuple[str, ...]
    """The `kind`s of diagnostics that this rule stands for."""
    fix: str
    """What to do, where the diagnostic itself says nothing better."""

    @property
    def link(self) -> str:
        """Where the rule is documented."""
        return f"{PAGE}#{self.code.lower()}"


RULES = (
    Rule("CK001", "a configuration file cannot be read", "error",
         ("FileNotFound", "DuplicateConfigFile", "BadDirectory"), "correct the path"),
    Rule("CK002", "a line is not text", "error", ("MalformedLine",), "save the file as UTF-8 with ordinary line ends"),
    Rule("CK003", "a variable in an include", "error", ("VariableInInclude",), "write the path out"),
    Rule("CK004", "a bracket or quote is never closed", "error", ("UnclosedBracket",), "close it"),
    Rule("CK005", "a bracket is closed by another one", "error", ("MismatchedBracket",), "use the same kind"),
    Rule("CK006", "nothing stands after the =", "error", ("MissingValue",), 'write name="" for an empty text'),
    Rule("CK007", "a variable is not defined", "error", ("UnknownVariable",), "define it"),
    Rule("CK008", "variables need each other", "error", ("VariableCycle",), "give one of them a value of its own"),
    Rule("CK009", "a text grows too large", "error", ("MultilineVariable", "ExpansionTooLarge", "NestingTooDeep"),
         "write it simpler"),
    Rule("CK010", "a parameter is not known, but another is called nearly so", "warning", ("UnknownParameter",),
         "correct the name"),
    Rule("CK011", "nothing reads a parameter", "hint", ("UnusedParameter",), "remove it, or move it where it belongs"),
    Rule("CK012", "an action is not known", "error", ("UnknownAction",), "use one of `cntkpy list actions`"),
    Rule("CK013", "a reader, deserializer or writer is not known", "error",
         ("UnknownReader", "UnknownDeserializer", "UnknownWriter", "UnknownModule"), "use one of `cntkpy list`"),
    Rule("CK014", "a network builder is not known", "error", ("UnknownBuilder",),
         "use SimpleNetworkBuilder or NDLNetworkBuilder"),
    Rule("CK015", "a required parameter is missing", "error", ("MissingParameter", "MissingPackage"), "add it"),
    Rule("CK016", "a parameter has no effect in cntkpy", "hint", ("IgnoredParameter", "Ignored"), "remove it"),
    Rule("CK020", "a number is expected", "error", ("BadInteger", "IntegerRange", "BadNumber"), "write a number"),
    Rule("CK021", "a truth value is expected", "error", ("BadBoolean",), "write true or false"),
    Rule("CK022", "one of several words is expected", "error", ("BadChoice", "BadPrecision", "BadDevice"),
         "write one of the words"),
    Rule("CK023", "an array is wrong", "error", ("BadRepeat", "EmptyVector"), "write value*count, one value at least"),
    Rule("CK024", "a value is outside its range", "error", ("BadValue",), "correct the value"),
    Rule("CK025", "an old name", "error", ("DeprecatedKey",), "use the new name"),
    Rule("CK026", "two parameters contradict each other", "error", ("Conflict",), "keep one of them"),
    Rule("CK030", "a file is included twice", "warning", ("RepeatedInclude",), "remove one of the includes"),
    Rule("CK031", "a bracket closes nothing", "warning", ("StrayBracket",), "remove it"),
    Rule("CK032", "a value without a name", "warning", ("EmptyName",), "write name=value"),
    Rule("CK033", "a bracket that belongs to nothing", "warning", ("NamelessGroup",), "give it a name"),
    Rule("CK034", "a whole section is replaced", "warning", ("SectionReplaced",), "use square brackets"),
    Rule("CK040", "more values per epoch than epochs", "hint", ("LongSchedule",), "drop the values behind maxEpochs"),
    Rule("CK041", "a variable is taken from further out than it seems", "warning", ("ShadowedVariable",),
         "give one of the two another name"),
    Rule("CK042", "a test or write builds a new network instead of loading the model", "warning",
         ("InheritedBuilder",), "move the builder into the training command"),
    Rule("CK043", "two network builders", "warning", ("SeveralBuilders",), "keep one of them"),
    Rule("CK044", "a test or write evaluates a network that nothing has trained", "warning", ("UntrainedNetwork",),
         "remove the builder and give modelPath, or train first"),
    Rule("CK050", "a statement of a network description cannot be read", "error",
         ("InvalidStatement", "InvalidMacro", "InvalidName", "ReservedName", "CommandArguments", "UnknownCommand",
          "OneNetworkFile", "TooDeep", "TooLarge", "RecursiveMacro"), "see docs/ndl.md"),
    Rule("CK051", "a network description uses a name that is not defined", "error",
         ("UndefinedNode", "UndefinedFunction", "UnknownSection", "UnknownGroup", "UnknownNode", "UnknownModel",
          "NoDefaultModel"),
         "define it, or correct it"),
    Rule("CK052", "arguments of a function are wrong", "error",
         ("UnknownOption", "FunctionArguments", "MacroArguments", "InvalidArgument", "ConstantExpected", "BadTag",
          "Unsupported", "UnknownProperty", "DeprecatedReshape"), "see `cntkpy help` FUNCTION"),
    Rule("CK053", "shapes of a network do not fit together", "error", ("BadShape", "UserError"), "change a dimension"),
    Rule("CK054", "a network description is not complete or says something twice", "error",
         ("Redefinition", "NoFeatureNode", "NoCriterion", "NoScalar", "NodeExists", "OperationMismatch", "BadCopy"),
         "see docs/ndl.md"),
    Rule("CK055", "the reader has no stream for an input of the network", "error", ("MissingStream",),
         "give both the same name"),
    Rule("CK056", "dimensions of reader and network differ", "error", ("DimensionMismatch",),
         "write the same dimension in both"),
    Rule("CK060", "an input file does not exist here", "hint", ("MissingFile",), "correct the path"),
    Rule("CK061", "the data do not fit their description", "error", ("DataMismatch",), "correct dim or the data"),
    Rule("CK099", "something else is wrong", "error", (), "see the message"),
)  # fmt: skip
"""Every rule. The page docs/findings.md has a bad and a good example of each."""

_BY_KIND = {kind: rule for rule in RULES for kind in rule.kinds}
_OTHER = RULES[-1]


def rule_of(kind: str) -> Rule:
    """The rule for a kind of diagnostic."""
    return _BY_KIND.get(kind, _OTHER)


def find_rule(code: str) -> Rule | None:
    """The rule with a code."""
    return next((rule for rule in RULES if rule.code == code.upper()), None)


@dataclass(frozen=True)
class Finding:
    """What was found: a diagnostic and the rule that it falls under."""

    diagnostic: Diagnostic
    rule: Rule
    severity: str

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> Finding:
        """The finding for a diagnostic. A warning of another part of the program stays one."""
        rule = rule_of(diagnostic.kind)
        return cls(diagnostic, rule, "warning" if diagnostic.severity == "warning" else rule.severity)

    @property
    def fix(self) -> str:
        """What to do, in one line."""
        return self.diagnostic.hint or self.rule.fix

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column; a finding without a place comes first."""
        span = self.diagnostic.span
        return (span.source.name, span.line, span.column) if span is not None else ("", 0, 0)

    def one_line(self) -> str:
        """`file:line:column: error: message - what to do [CK012]`."""
        where = f"{self.diagnostic.span}: " if self.diagnostic.span else ""
        hint = f" - {self.diagnostic.hint}" if self.diagnostic.hint else ""
        return f"{where}{self.severity}: {printable(self.diagnostic.message)}{hint} [{self.rule.code}]"

    def ignored(self) -> bool:
        """Whether a comment in its line, or `# cntkpy: ignore-file=...` in its file, switches it off."""
        span = self.diagnostic.span
        if span is None:
            return False
        if self._matches(span.source.line(span.line) or "", False):
            return True
        number = 1
        while (line := span.source.line(number)) is not None and (not line.strip() or line.lstrip().startswith("#")):
            if self._matches(line, True):
                return True
            number += 1
        return False

    def _matches(self, line: str, whole_file: bool) -> bool:
        found = _COMMENT.search(line)
        if not found or bool(found["file"]) != whole_file:
            return False
        return found["codes"] is None or selects(found["codes"], self.rule.code)

    def as_error(self) -> Finding:
        """The same with the severity `error`."""
        return replace(self, severity="error")


def selects(codes: str | Iterable[str], code: str) -> bool:
    """Whether a code is among `codes` (a list, or a text with commas); `CK01` selects all that begin with it."""
    words = codes.split(",") if isinstance(codes, str) else codes
    return any(word.strip() and code.startswith(word.strip().upper()) for word in words)
