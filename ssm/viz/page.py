"""The HTML page of a run, from its folder."""

from pathlib import Path
from typing import Any

from ssm.errors import UserError
from ssm.runs.reader import FinishedRun, spans
from ssm.runs.weight_file import weight_path
from ssm.viz import labels, pictures, sections
from ssm.viz.sections import Table

HERE = Path(__file__).parent


def render(run: FinishedRun, *, result: Table | None = None, artifact: int | None = None) -> str:
    """Return the HTML page of a run, self-contained: no script, and nothing loaded from elsewhere.

    result: the table of results to show (default: the run's own figures).  artifact: bytes of an exported net of the
    run, if there is one.

    Raises:
        UserError: for a damaged file of the run, or a run all of whose seeds failed.
    """
    if not run.seeds:
        raise UserError(f"{run.folder}: every seed of it was excluded: there is nothing to show")
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    summary = run.summary
    model = labels.MODELS.get(run.setting("model"), run.setting("model"))
    init = labels.INITS.get(run.setting("init"), run.setting("init"))
    values: dict[str, Any] = {
        "name": run.name,
        "title": f"{model}, {labels.method(run.setting('method'))}, {init}",
        "about": labels.about([run]),
        "weights": summary["weights"],
        "kept": _kept(run, artifact),
        "source": summary["source"],
        "style": (HERE / "report.css").read_text(encoding="utf-8"),
        "result": result or sections.result_table(summary),
        "curves": pictures.curve_pictures(run),
        "seeds": sections.seeds_table(summary),
        "configuration": sections.settings_table(run.config, ["setting", "value"]),
        "environments": _environments(run),
        "no_masks": _no_masks(run),
    }
    values |= _masks(run, artifact) if not values["no_masks"] else {}
    return environment.get_template("report.html").render(values)


def _kept(run: FinishedRun, artifact: int | None) -> str:
    """Return what the weights that remain are, as far as is known, and how many bytes a seed's net takes."""
    about = labels.WEIGHTS.get(run.setting("method"))
    lines = [f"Weights that are not 0: {about}."] if about else []
    files = [weight_path(run.folder, seed) for seed in run.seeds]
    held = next((file for file in files if file.exists()), None)
    if artifact is not None:
        lines.append(f"A seed's net takes {artifact:,} bytes as a file.")
    elif held is not None:
        lines.append(f"A seed's weights take {held.stat().st_size:,} bytes in the run's folder.")
    return "  ".join(lines)


def _no_masks(run: FinishedRun) -> str:
    if not run.is_masked:
        return "A baseline has no masks: all its weights are trained and kept."
    if not run.has_masks:
        return (
            "This folder keeps no masks, as a published run may not: the folder that the run was written to has them."
        )
    return ""


def _masks(run: FinishedRun, artifact: int | None) -> dict[str, Any]:
    masks = run.masks()
    looked = sections.look(masks)
    many = len(run.mask_seeds) > 1
    return {
        "mask_seeds": f"seed{'s' if many else ''} {spans(run.mask_seeds)}",
        "maps": pictures.mask_pictures(run, masks),
        "layers": pictures.layer_pictures(run, looked),
        "shares": sections.shares_table(masks, looked, labels.signs(run.setting("method"))),
        "agreement": sections.agreement_table(masks, looked) if many else None,
        "dead": sections.dead_table(run, masks),
        "sizes": sections.size_table(masks, artifact=artifact, own=run.setting("method") in labels.OWN_VALUES),
    }


def _environments(run: FinishedRun) -> list[tuple[str, Table]]:
    return [
        (spans(seeds), sections.settings_table(environment, ["what", "value"]))
        for seeds, environment in run.environments()
    ]
