"""What actions are told about the run around them."""

from cntkpy.commands.context.run_context import RunContext, Seeds


def test_seeds_go_on_from_command_to_command() -> None:
    source = Seeds()
    first, second = RunContext("a", "train", seed_source=source), RunContext("b", "train", seed_source=source)
    assert [first.seeds.next(), second.seeds.next()] == [1, 2]
    assert [RunContext("a", "train", seed_source=Seeds(constant=True)).seeds.next() for _ in range(2)] == [1, 1]
