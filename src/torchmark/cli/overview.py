"""The commands at a glance: the help of the whole program, without loading any of it."""

from __future__ import annotations

# Name, module with its click command in `command`, and the line that describes it.
COMMANDS = {
    "time": ("torchmark.cli.cmd_time", "Time one or more statements; several give a table."),
    "count": ("torchmark.cli.cmd_count", "Count the instructions of one or more statements."),
    "fuzz": ("torchmark.cli.cmd_fuzz", "Time statements on random inputs, and tell where they differ."),
    "ab": ("torchmark.cli.cmd_ab", "Compare two builds, or two statements: is one slower?"),
    "overrides": ("torchmark.cli.cmd_overrides", "Measure what __torch_function__ costs, or what changed of it."),
    "flame": ("torchmark.cli.cmd_flame", "Draw a flame graph of a statement or a case."),
    "run": ("torchmark.cli.cmd_run", "Measure every case of a suite, and keep the results."),
    "show": ("torchmark.cli.cmd_show", "Show the results of a run."),
    "report": ("torchmark.cli.cmd_report", "Write a run, or what changed since another, as one HTML page."),
    "compare": ("torchmark.cli.cmd_compare", "Compare two runs, or two environments of one."),
    "accept": ("torchmark.cli.cmd_accept", "Accept counts, so that a gate holds later ones against them."),
    "history": ("torchmark.cli.cmd_history", "Show how cases changed over the runs that are kept."),
    "selftest": ("torchmark.cli.cmd_selftest", "Measure how far comparisons can be trusted here."),
    "list": ("torchmark.cli.cmd_list", "List the benchmarks of a suite, a file or a folder."),
    "runs": ("torchmark.cli.cmd_runs", "List the runs that are kept."),
    "rm": ("torchmark.cli.cmd_rm", "Remove runs that are kept."),
    "merge": ("torchmark.cli.cmd_merge", "Put the runs of several stores into one, shards together."),
    "import": ("torchmark.cli.cmd_import", "Take in a run that was exported elsewhere."),
    "export": ("torchmark.cli.cmd_export", "Write a run in the format of another program."),
    "cache": ("torchmark.cli.cmd_cache", "Show or empty the cache of compiled C++."),
    "doctor": ("torchmark.cli.cmd_doctor", "Say what this machine has and lacks for good measurements."),
}


def overview() -> str:
    """The help of the whole program."""
    lines = [f"  {name:<9}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: torchmark COMMAND [OPTIONS] [ARGUMENTS]",
            "",
            "  Measure PyTorch code: how long it takes, how many instructions, and whether",
            "  the number can be trusted.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  --version  Show the version and exit.",
            "  --help     Show this text and exit.",
            "",
            "'torchmark COMMAND --help' tells more of each command. For completion in bash:",
            '  eval "$(_TORCHMARK_COMPLETE=bash_source torchmark)"    (or zsh_source)',
        ]
    )
