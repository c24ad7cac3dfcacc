"""The presentations of all kinds of experiments, in the order of the page."""

from goatrl.report import cells, finetuning, timing
from goatrl.report.presentation import register

register("grid", cells)
register("finetune", finetuning)
register("timing", timing)
