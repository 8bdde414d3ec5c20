"""Write all generated pages again, or say which are old.

python -m tools.docs            writes them
python -m tools.docs --check    writes nothing; exit status 1 and a list where a page is old
"""

import sys
from pathlib import Path

import click

from tools.docs.pages import old, pages

ROOT = Path(__file__).resolve().parents[2]


@click.command(help="Write the generated pages of the documentation again.")
@click.option(
    "--check", is_flag=True, help="Write nothing; list the pages that are old, and end with 1 if there are any."
)
def main(check: bool) -> None:
    """Write or compare the pages."""
    made = pages(ROOT)
    stale = old(ROOT, made)
    for path in stale:
        click.echo(f"{path}: {'old' if check else 'written'}")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(made[path], encoding="utf-8")
    if check and stale:
        click.echo("run: python -m tools.docs", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
