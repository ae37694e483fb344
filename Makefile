# Everything runs in the environment .venv, made on first use and renewed when pyproject.toml changes.
#   make train ARGS="--seeds=50"     make test ARGS="-k ternary"     make train PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

.DELETE_ON_ERROR:
.PHONY: help train report notebook results test lint format clean

help:  ## list the targets
	@grep -E '^[a-z]+: .*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

train: $(INSTALLED)  ## train the masks of the FCN and print its row beside the paper's (options in ARGS)
	$(BIN)/python experiments/train.py --model=fcn $(ARGS)

report: $(INSTALLED)  ## make a page of the run that was finished last: report.html (another one: ARGS=runs/NAME)
	$(BIN)/python experiments/report.py $(ARGS)

notebook: $(INSTALLED_DEV)  ## run the notebook that looks at masks; leaves runs/mask_inspection.ipynb
	@mkdir -p runs
	$(BIN)/python -m jupyter execute experiments/notebooks/mask_inspection.ipynb --output=../../runs/mask_inspection $(ARGS)

results: $(INSTALLED_DEV)  ## make docs/results anew from the runs in experiments/results
	@mkdir -p docs/results
	$(BIN)/python experiments/table.py experiments/results > docs/results/tables.md
	$(BIN)/python experiments/table.py experiments/results --format=latex > docs/results/tables.tex
	$(BIN)/python experiments/table.py experiments/results --format=csv > docs/results/tables.csv
	$(BIN)/python experiments/sizes.py experiments/results > docs/results/sizes.md
	find docs/results -name '*.png' ! -name 'literature-*' ! -name 'beyond-*' -delete
	$(BIN)/python experiments/figures.py experiments/results --out docs/results $(ARGS) > docs/results/figures.txt
	rm docs/results/*.svg
	sed -i.old '/svg:/d' docs/results/figures.txt && rm docs/results/figures.txt.old
	$(BIN)/python -m cogapp -r -P -I experiments $$(grep -rl --include='*.md' '\[\[\[cog' README.md docs)

test: $(INSTALLED_DEV)  ## run the tests (options of pytest in ARGS)
	$(BIN)/python -m pytest --numprocesses=auto --maxprocesses=8 --dist=worksteal $(ARGS)

lint: $(INSTALLED_DEV)  ## check format, style and types
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m pyright --pythonpath $(BIN)/python

format: $(INSTALLED_DEV)  ## rewrite the files in the format that lint wants
	$(BIN)/python -m ruff check --fix-only .
	$(BIN)/python -m ruff format .

clean:  ## remove the environment, caches and built packages; runs and data stay
	rm -rf $(VENV) build dist .hypothesis .pytest_cache .ruff_cache
	find ssm experiments tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || { \
		echo "Python 3.11, 3.12 or 3.13 is needed, and $(PYTHON) is: $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; }
	@echo "Making the environment $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { \
		rm -f $(BIN)/python*; \
		echo "$(PYTHON) could not make $(VENV).  On Debian: apt-get install python3-venv" >&2; \
		exit 1; }

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo "Installing the package and what it needs into $(VENV) (once; a minute or two)"
	@$(PIP) -qq --editable . || { echo 'To see all that pip does: $(PIP) --editable .' >&2; exit 1; }
	@touch $@

$(INSTALLED_DEV): pyproject.toml | $(BIN)/python
	@echo "Installing the package, what it needs and the developers' tools into $(VENV) (once; a minute or two)"
	@$(PIP) -qq --editable '.[dev]' || { echo 'To see all that pip does: $(PIP) --editable .[dev]' >&2; exit 1; }
	@touch $(INSTALLED) $@
