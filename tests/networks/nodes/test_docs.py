"""docs/functions.md is written from the declarations, and says something about every function."""

from networks import nodes
from networks.nodes import docs


def test_the_page_is_up_to_date():
    assert docs.PAGE.read_text(encoding="utf-8") == docs.page(), "run: python -m networks.nodes.docs"


def test_every_function_and_option_is_explained():
    text = docs.page()
    for kind in nodes.kinds():
        if kind.unsupported:
            assert f"`{kind.name}`" in text
            continue
        assert f"\n### {kind.name}\n" in text and kind.meaning
        assert kind.shape is None or kind.shape.__doc__
        for option in kind.options:
            assert option.help, (kind.name, option.name)
