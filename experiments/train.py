"""Train signed Supermasks, binary ones or the dense baseline, many seeds at once; ends with the paper's row beside.

- python experiments/train.py --model=fcn                     5 seeds, the model's own data if it is available
- python experiments/train.py --model=fcn --dataset=mnist --seeds=50
- python experiments/train.py --model=conv4 --seeds=1 --preset=paper --dry-run
"""

from pathlib import Path

from options import Options, configured, job_of, prepare, run_options, with_method
from ssm.runs.program import run_program


def main(options: Options) -> None:
    from ssm.recipes.config import parse_seeds

    seeds = parse_seeds(options.seeds)
    prepare(options)
    from ssm.runs import processes

    with processes.together():
        config, dataset = configured(options)
        print(f"data: {dataset.source}")
        print(
            "configuration: " + ", ".join(f"{name}={value}" for name, value in config.as_dict().items()),
            flush=True,
        )
        if options.dry_run:
            say_needs(config, dataset, len(seeds), options)
        else:
            train(config, dataset, seeds, options)


def say_needs(config, dataset, seeds: int, options: Options) -> None:
    import jax

    from ssm.runs.compiled import compiled_memory
    from ssm.runs.estimate import count_masked, estimate
    from ssm.runs.progress import counted
    from ssm.runs.run import apart, fitting_plan
    from ssm.training.devices import seed_loop

    job = job_of(options, config, dataset)
    group, devices = fitting_plan(job, seeds, run_options(options))
    loop = options.seed_loop or seed_loop(job.task)
    if apart(job.task, devices, loop, jax.local_device_count()):
        devices *= 2  # one for each half of a seed's batches
    at_once = f"{counted(group, 'seed')} at once on {counted(devices, 'device')}"
    kind = "under the mask" if job.task.net(job.task.numbers).learner.has_masks else "trained"
    compiled = None
    if jax.default_backend() != "cpu":
        compiled = compiled_memory(job, devices=devices, loop=loop)(group)
    if job.memory is None:
        weights = count_masked(job.task.net(job.task.numbers), job.task.example)
        print(f"weights {kind}: {weights:,}")
        if compiled is not None:
            print(f"memory: {compiled / 1e9:.1f} GB a device with {at_once}, as compiled")
        print(f"{'memory and time' if compiled is None else 'time'}: not known for this net; {at_once}")
        return
    needs = estimate(job.task, config, dataset, group=group, devices=devices, loop=loop)
    total = needs.seconds * seeds * config.epochs
    print(f"weights {kind}: {needs.weights:,}")
    if compiled is None:
        print(f"memory: about {needs.bytes / 1e9:.1f} GB with {at_once}, an estimate")
    else:
        print(f"memory: {compiled / 1e9:.1f} GB a device with {at_once}, as compiled")
    most = "about" if job.task.hidden is None else "at most about"  # units that die are left out
    print(f"time: {most} {needs.seconds:.2f} s per epoch and seed, {duration(total)} for {counted(seeds, 'seed')}")


def duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def train(config, dataset, seeds: list[int], options: Options) -> None:
    from paper.tables import final_table, read_paper, with_config
    from ssm.runs.run import run_job

    execution = run_options(options)
    run = run_job(job_of(options, config, dataset), seeds, out=options.out, options=execution)
    if execution.hosts.number > 0:
        print(f"process {execution.hosts.number} has finished its seeds; process 0 prints the results")
        return
    paper = read_paper(Path(__file__).with_name("paper") / "paper.json")
    summary = run.summary()
    assert summary is not None  # at least one seed is finished
    print(f"results: {run.folder}\n")
    print(final_table(with_config(summary, config.as_dict()), paper))


if __name__ == "__main__":
    run_program(main, with_method(Options), description=__doc__, trains=True)
