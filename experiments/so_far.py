"""Results of a run that isn't finished, after the epochs that it has: `python experiments/so_far.py RUN`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from recorded import recorded
from ssm.runs.program import run_program
from ssm.runs.reader import read_begun, spans


@dataclass(frozen=True, kw_only=True)
class Options:
    """Evaluate the seeds that a run has still in training as they were last saved, and keep the results as a run of so
    many epochs, with masks, summary, and the environment of its training.  The run itself stays as it is: it may go on,
    now or later."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    data_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder with the data set's files (default: as train.py finds them)."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: beside the run)")] = None
    """Folder for the results."""


def main(options: Options) -> None:
    """Finish the run's unfinished seeds where they are, and print each result beside the paper's.

    Raises:
        UserError: for a folder without a run or without a checkpoint, other data, or a damaged file.
    """
    run = read_begun(options.run)
    environments = run.environments()
    environment = environments[-1][1] if environments else {}
    config, dataset, job, loop = recorded(run, environment, options.data_dir)
    from paper.tables import final_table, read_paper, with_config
    from ssm.runs.job import recorded_job
    from ssm.runs.run import RunOptions, run_job
    from ssm.runs.so_far import so_far

    paper = read_paper(Path(__file__).with_name("paper") / "paper.json")

    def log(line: str) -> None:
        print(line, flush=True)

    finished = run.seeds if run.summary else ()
    for found in so_far(config, run.folder, job.about["data"], log, finished):
        log(f"seeds {spans(found.seeds)} of {run.name}, after {found.config.epochs} of {config.epochs} epochs")
        job, _ = recorded_job(found.config, dataset, environment)
        execution = RunOptions(loop=loop, snapshots=found.snapshots, environment=environment or None, log=log)
        done = run_job(replace(job, advice=None), found.seeds, out=options.out or run.folder.parent, options=execution)
        summary = done.summary()
        assert summary is not None  # its seeds are finished
        print(f"results: {done.folder}\n\n{final_table(with_config(summary, found.config.as_dict()), paper)}")


if __name__ == "__main__":
    run_program(main, Options, trains=True)
