"""What may be secret in a URL stands in no message."""

import pytest

from cntkpy.cntk_config.base.diagnostics import Diagnostic, Span, UserError
from cntkpy.cntk_config.base.names import Url, is_url, masked, public_name, reveals, split_names
from cntkpy.cntk_config.base.source import Source


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("read https://me:pw@host/a?sig=s3cret now", "read https://host/a now"),
        ("(s3://key:secret@b/a) and gs://b/c?x", "(s3://b/a) and gs://b/c"),
        ("file='https://h/a?b=c&d';", "file='https://h/a';"),
        ("[x=https://u@h/a?t=1;y=2]", "[x=https://h/a;y=2]"),
        ("see https://h/page#place", "see https://h/page#place"),
        ("what? me@home", "what? me@home"),
        ("C://a", "C://a"),
        ("at https://h:8080/a?x=1, too", "at https://h:8080/a too"),
        ("can't read https://h/a?x=1 now, it's", "can't read https://h/a now, it's"),
        ('{"a": "\'https://h/a?x=1", "b": "c\'"}', '{"a": "\'https://h/a", "b": "c\'"}'),
        ('{"a": "x=https://me:a b@h/a?x=1 2", "b": "?"}', '{"a": "x=https://h/a", "b": "?"}'),
        ('a="b";x=https://h/a?x=1 y="c"', 'a="b";x=https://h/a y="c"'),
        ("a part, https://me:s3", "a part, https://"),
        ("hf://datasets/me/d@main/a.csv", "hf://datasets/me/d@main/a.csv"),
    ],
)
def test_masked(text: str, found: str) -> None:
    assert masked(text) == found
    assert len(masked(text, "*")) == len(text)


SECRET = [
    "s3/cr3t",
    "s3@cr3t",
    "s3 cr3t",
    "s3%2Fcr3t%40",
    "s3?cr3t",
    "s3#cr3t",
    "s3:cr3t",
    "s3/c@r3t",
    "12/3cr3t",
    "s3;cr3t",
]


@pytest.mark.parametrize("secret", SECRET)
def test_passwords_of_any_form(secret: str) -> None:
    """R14: a password with a slash or a blank stood in messages."""
    url = f"https://me:{secret}@host/a.ctf?token={secret}"
    assert public_name(url) == "https://host/a.ctf"
    for text in (f"cannot read '{url}': it ends", f'file = "{url}"; x = 1', f"x={url}"):
        if ";" in secret and "'" not in text and '"' not in text:
            continue  # it ends the value
        for sign in ("", "*"):
            found = masked(text, sign, is_value=text[0] == "x")
            assert "cr3t" not in found and "host/a.ctf" in found, found
            assert not sign or len(found) == len(text)
    source = Source("f", f'file = "{url}"')
    shown = Diagnostic("CannotRead", f"cannot read '{url}'", Span(source, 1, 9, len(url))).render()
    assert "cr3t" not in shown
    assert reveals("Port could not be cast to integer value as '12'", "https://me:125@h") is False
    assert reveals(f"bad value {secret}", url)


def test_urls_and_their_public_names() -> None:
    url = Url("https://u:p@h/a?q=1#f")
    assert f"{url}" == str(url) == "%s" % url == public_name(url) == "https://h/a"  # noqa: UP031
    assert repr(url) == "'https://h/a'" and f"{url:>12}" == " https://h/a"
    assert url == "https://u:p@h/a?q=1#f" and is_url(url)  # what is opened is all of it
    assert public_name("a?b") == "a?b" and not is_url("C:/a") and not is_url("a/b")


def test_errors_have_no_secrets() -> None:
    url = "https://me:secret@host/a?sig=secret"
    error = UserError("CannotRead", f"cannot read {url}", hint=f"look at {url}", notes=(f"from {url}",))
    source = Source("f", f"file = {url}")
    found = Diagnostic("CannotRead", f"cannot read {url}", Span(source, 1, 8, len(url)), f"look at {url}")
    assert (
        "secret" not in f"{error}{error.hint}{error.notes}{error.__notes__}{error.diagnostic.render()}{found.render()}"
    )
    assert "file = https://**********host/a***********" in found.render()


def test_a_password_with_a_plus_sign() -> None:
    """R14: a configuration's name is cut at plus signs."""
    assert split_names("a+https://me:p+w@h/b+c") == ["a", "https://me:p+w@h/b", "c"]
    assert split_names("https://h/b+c@d") == ["https://h/b", "c@d"]


def test_a_query_with_a_plus_sign() -> None:
    """R14: what follows a plus sign in a query stands in no message as the name of a file."""
    assert split_names("https://h/a.cntk?t=x+hidden+y&s=1+b.cntk") == ["https://h/a.cntk?t=x+hidden+y&s=1", "b.cntk"]
    assert split_names("https://h/a?t=x+https://h/b?t=y+z") == ["https://h/a?t=x", "https://h/b?t=y+z"]
    assert split_names("https://h/a.cntk?t=x + b.cntk") == ["https://h/a.cntk?t=x ", " b.cntk"]
    assert split_names("a?b+c") == ["a?b", "c"]
