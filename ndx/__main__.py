"""``python -m ndx``: run a script with its memory under control, or describe ndx."""

import argparse
import os
import sys

from ndx._cli.info import report
from ndx._cli.memory_report import explain, report_at_exit
from ndx._cli.numpy_placement import Placement
from ndx._cli.program import check_program, run_program
from ndx._cli.trace import new_trace, save_at_exit

_AS_PYTHON = (
    "Run a script, or a module, as `python` would. Options for this command stand "
    "before the script; what follows it is the script's. "
)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m ndx",
        description="ndx: the array library whose memory you control.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser(
        "info",
        help="print versions, CPU features, backends, limits and defaults",
        description="Print versions, CPU features, backends, limits and defaults.",
    )
    _add_run(commands)
    _add_trace(commands)
    return parser


def _add_run(commands):
    run = commands.add_parser(
        "run",
        help="run a NumPy script with the memory of its arrays counted and limited",
        description=_AS_PYTHON + "The memory of NumPy's arrays is counted, limited, "
        "and beyond the limit in files. Each process that the script starts by "
        "`multiprocessing` or `os.fork` has a limit of its own.",
        usage="python -m ndx run [options] (SCRIPT | -m MODULE) ...",
    )
    run.add_argument(
        "--limit",
        metavar="SIZE",
        help="the most memory of a process for arrays: 2GiB, or 80%% of the memory of "
        "the machine or the control group (default: none; with --fallback, 50%%)",
    )
    run.add_argument(
        "--fallback",
        metavar="mmap",
        help="where arrays beyond the limit are: mmap, which is files (default: "
        "nowhere; NumPy raises MemoryError)",
    )
    run.add_argument(
        "--directory",
        metavar="FOLDER",
        help="the folder for these files, on a disk (default: TMPDIR, or /var/tmp)",
    )
    run.add_argument(
        "--trace",
        metavar="FILE",
        help="save a picture of the memory: .html, or .json for Perfetto",
    )
    run.add_argument(
        "--report",
        action="store_true",
        help="print peaks, numbers of allocations and the time at the end, on stderr",
    )
    _add_program(run)


def _add_trace(commands):
    trace = commands.add_parser(
        "trace",
        help="run a script and save a picture of its memory",
        description=_AS_PYTHON + "What happened to its arrays is saved: also if it "
        "fails.",
        usage="python -m ndx trace [--output FILE] [options] (SCRIPT | -m MODULE) ...",
    )
    trace.add_argument(
        "-o",
        "--output",
        default="trace.html",
        metavar="FILE",
        help=".html (default: %(default)s), or .json for Perfetto",
    )
    trace.add_argument(
        "--stacks",
        type=int,
        default=4,
        metavar="N",
        help="lines of the call stack to keep (default: %(default)s)",
    )
    trace.add_argument(
        "--max-events",
        type=int,
        default=1_000_000,
        metavar="N",
        help="events to keep (default: %(default)s)",
    )
    _add_program(trace)


def _add_program(command):
    command.add_argument(
        "-m", "--module", action="store_true", help="run a module, as `python -m` does"
    )
    command.add_argument("script", metavar="SCRIPT", help="the script, or the module")
    command.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")


def _start(options):
    """Start what a command does beside the program; raise if it can't be done."""
    output = options.output if options.command == "trace" else options.trace
    trace = None
    if options.command == "trace":
        trace = new_trace(output, options.max_events, options.stacks)
    elif output is not None:
        trace = new_trace(output)
    check_program(options.script, options.module)
    if options.command == "run":
        folder = options.directory and os.path.abspath(options.directory)
        placed = Placement(options.limit, options.fallback, folder).begin()
        if options.report:
            report_at_exit(placed)
    if trace is not None:
        save_at_exit(trace, output, _NO_ARRAYS if options.command == "trace" else "")


_NO_ARRAYS = (
    "The program made no array of ndx. NumPy's are recorded by: python -m ndx run "
    "--trace FILE"
)


def main(arguments=None):
    """Run a command; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "info":
        print(report())
        return 0
    try:
        _start(options)
    except (ValueError, TypeError, OSError) as error:
        parser.error(str(error))
    run_program(
        options.script,
        options.arguments,
        options.module,
        explain if options.command == "run" else None,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
