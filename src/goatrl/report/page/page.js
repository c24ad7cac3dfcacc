"use strict";

// Draws every view of the report from the aggregates in #data. One view is shown at a time, chosen by the address:
// #/ the finding and all experiments, #/EXPERIMENT, #/EXPERIMENT/GROUP, #/everything. What a reader has chosen there stands
// behind a question mark (#/EXPERIMENT?metric=return&sort=GOAT&direction=descending), so that a link gives the same view again.

const DATA = JSON.parse(document.getElementById("data").textContent);
const MAIN = document.getElementById("main");
const SPLITS = { iid: "IID", ood: "OOD", mixed: "Mixed", all: "All tasks" };
const SPLIT_WORDS = { iid: "seen by the data", ood: "unseen", mixed: "seen and unseen", all: "seen and unseen" };
const TASK = "Task"; // the heading of the table's first column
// What all parts of a view share, as the address has it; what is as here is not in the address.
const DEFAULTS = { metric: "success", split: "all", group: "", text: "", sort: "", direction: "", paper: "shown", goals: "", curve: "" };
const state = { ...DEFAULTS };
const shown = { path: null, query: "" }; // the address of the view
const NARROW = matchMedia("(max-width: 30rem)"); // where charts are drawn for a phone
let redraws = []; // what depends on the state, in the view that is shown
let media = []; // addresses of clips, to be given back when the view changes
let counter = 0;

// Elements

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}
const h = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const fresh = (stem) => `${stem}-${++counter}`;
const breakable = (name) => name.split(/(?<=\+)/).flatMap((part, place) => (place ? [h("wbr"), part] : [part]));
const unseen = (text) => h("span", { class: "unseen" }, text);
const badge = (split) => h("span", { class: `split ${split}` }, SPLITS[split]);
const address = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
const groupAddress = (experiment, group) => address(experiment.name, group.name) + (state.metric === DEFAULTS.metric ? "" : `?metric=${state.metric}`);
const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const say = (text) => (document.getElementById("said").textContent = text);

function section(title, ...children) {
  const id = fresh("section");
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

/** A part of the view that is drawn again whenever the state changes. */
function live(draw) {
  const box = h("div");
  box.redraw = () => box.replaceChildren(draw());
  redraws.push(box.redraw);
  box.redraw();
  return box;
}
const changed = () => redraws.forEach((redraw) => redraw());

/** Another choice in the view that is shown. It is a step of the Back button unless it takes the place of the last one. */
function choose(choices, inPlace = false) {
  Object.assign(state, choices);
  shown.query = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name])).toString();
  const hash = `#/${shown.path}${shown.query && `?${shown.query}`}`;
  if (inPlace) location.replace(hash);
  else location.hash = hash;
  changed();
}

/** A picture that says in words what it shows. */
function picture(title, description, width, height, ...shapes) {
  const [name, about] = [fresh("title"), fresh("about")];
  return s(
    "svg",
    { class: width > 250 ? "chart" : null, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": `${name} ${about}` },
    s("title", { id: name }, title),
    s("desc", { id: about }, description),
    ...shapes,
  );
}
const PEN = document.createElement("canvas").getContext("2d");
/** How wide the widest of some labels is, in letters of 12 pixels. */
function widest(labels) {
  PEN.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return Math.max(...labels.map((label) => PEN.measureText(label).width));
}
const panel = (classes, caption, ...children) => h("figure", { class: `panel ${classes}` }, h("figcaption", {}, caption), ...children);
const diamond = (x, y, size) => `M${x - size} ${y}L${x} ${y - size}L${x + size} ${y}L${x} ${y + size}Z`;

// Numbers

const fixed = (value, metric) => (value === null ? "–" : (metric.times * value).toFixed(metric.decimals));
const withUnit = (value, metric) => `${fixed(value, metric)}\u00a0${metric.unit}`; // never on two lines
const headed = (metric) => `${metric.title} (${metric.unit})`;
const range = (row, metric) => `${fixed(row.low, metric)} to ${fixed(row.high, metric)}`;
const episodeNoise = (row, metric) => (row.noise === undefined ? "" : `, episodes alone ±${fixed(row.noise, metric)}`); // times have none
const ofExpert = (row) => (row.share === null || row.share === undefined ? "" : `, ${row.share} % of the expert’s success`);
const short = (value) => (Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : `${+value.toPrecision(3)}`);

// Controls

function choice(legend, options, current, onChoose) {
  const name = fresh("choice");
  const inputs = Object.keys(options).map((key) =>
    h("input", { type: "radio", name, value: key, checked: key === current(), change: () => onChoose(key) }),
  );
  redraws.push(() => inputs.forEach((input) => (input.checked = input.value === current())));
  const labels = inputs.map((input) => h("label", {}, input, h("span", {}, options[input.value])));
  return h("fieldset", {}, h("legend", {}, legend), h("span", { class: "choice" }, ...labels));
}

function metricChoice(experiment) {
  const titles = Object.fromEntries(Object.entries(experiment.metrics).map(([key, metric]) => [key, metric.title]));
  return choice("Measure", titles, () => state.metric, (metric) => choose({ metric }));
}

function selection(name, options, current, onChoose) {
  const entries = Object.entries(options).map(([value, text]) => h("option", { value, selected: value === current() }, text));
  const select = h("select", { change: (event) => onChoose(event.target.value) }, ...entries);
  redraws.push(() => (select.value = current()));
  return h("label", {}, h("span", { class: "name" }, name), select);
}

// Summary

function facts(...pairs) {
  const items = pairs.filter((pair) => pair && pair[1] !== null).map(([name, ...value]) => h("div", {}, h("dt", {}, name), h("dd", {}, ...value)));
  return h("dl", { class: "facts" }, ...items);
}

// What can become of a claim that was checked, with its mark and its style.
const OUTCOMES = { held: ["✓ Held", "held"], undecided: ["? Undecided", "open"], "not held": ["✗ Not held", "failed"] };

/** What became of the paper's conclusions, of those that could be checked. */
function outcomes(experiment) {
  const counts = Object.keys(OUTCOMES).map((outcome) => [experiment.verdicts.filter((verdict) => verdict.outcome === outcome).length, outcome]);
  const found = counts.filter(([count]) => count).map(([count, outcome]) => `${count} ${outcome}`);
  return found.length ? ["The paper’s conclusions", found.join(", ")] : null;
}

function summaryFacts(experiment) {
  const metric = experiment.metrics.success;
  const tasks = experiment.groups.flatMap((group) => group.tasks);
  const best = (split) => {
    const found = experiment.best[split];
    const shown = tasks.filter((task) => split === "all" || task.split === split).length;
    const over = found && found.tasks < shown ? ` over ${plural(found.tasks, "task")} that all have` : "";
    return found ? [found.others ? `${found.label} and ${found.others} more` : found.label, " ", h("span", { class: "soft" }, withUnit(found.value, metric) + over)] : [null];
  };
  const near = experiment.agreement.success;
  const kinds = ["iid", "ood", "mixed"].map((split) => [split, tasks.filter((task) => task.split === split).length]).filter(([, n]) => n);
  const finer = { ...metric, decimals: metric.decimals + 1 };
  return facts(
    ["Datasets", `${experiment.groups.length}`, h("span", { class: "soft" }, experiment.groups.length < experiment.datasets ? ` of ${experiment.datasets}` : "")],
    ["Tasks", `${tasks.length} `, h("span", { class: "soft" }, kinds.map(([split, n]) => `${n} ${SPLITS[split]}`).join(", "))],
    ["Algorithms", `${experiment.algorithms.length}`],
    ["Seeds", experiment.seeds],
    ["Episodes", experiment.episodes.toLocaleString("en")],
    [`Best on ${experiment.best.iid ? "IID" : "all"} tasks`, ...best(experiment.best.iid ? "iid" : "all")],
    ["Best on OOD tasks", ...best("ood")],
    near && ["Mean difference from the paper", fixed(near.difference, finer), h("span", { class: "soft" }, ` percentage points over ${plural(near.cells, "cell")}`)],
    near && ["Rank correlation with the paper", near.correlation === null ? "–" : near.correlation.toFixed(3)],
    outcomes(experiment),
  );
}

/** What an experiment's line says is best in it. */
function bestLine(experiment) {
  const split = experiment.best.ood ? "ood" : "all";
  const { label, others, value } = experiment.best[split];
  return [`${label} ${withUnit(value, experiment.metrics.success)} `, h("span", { class: "soft" }, `${SPLITS[split]}${others ? `, and ${others} more` : ""}`)];
}

/** What an experiment is; of several of the same suite, how the later ones differ from the first. */
function aboutLine(experiment) {
  const first = DATA.experiments.find((each) => each.suite && each.suite === experiment.suite) ?? experiment;
  const all = experiment.datasets ?? experiment.groups.length;
  const names = experiment.groups.length < 3 ? `: ${experiment.groups.map((group) => group.label).join(", ")}` : "";
  const differs = [
    experiment.groups.length < all ? `${experiment.groups.length} of ${plural(all, "dataset")}${names}` : "",
    experiment.reproduction?.datasets.some((each) => !each.listed) ? "other dataset files" : "",
  ].filter(Boolean).join("; ");
  return [first === experiment ? experiment.about : `As ${first.name}.`, differs ? h("span", { class: "soft" }, ` ${differs[0].toUpperCase()}${differs.slice(1)}.`) : null];
}

/** All experiments, a line each, those of a family together. */
function experimentTable() {
  const heads = ["Experiment", "What it is", "Seeds", "Best", "Claims"];
  const line = (experiment) => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: address(experiment.name) }, experiment.name)),
    h("td", { class: "about" }, ...aboutLine(experiment)),
    h("td", {}, experiment.seeds ?? "–"),
    h("td", { class: "best" }, ...KINDS[experiment.kind].best(experiment)),
    h("td", {}, outcomes(experiment)?.[1] ?? h("span", { class: "soft" }, "–")));
  const families = [...new Set(DATA.experiments.map((experiment) => experiment.family))].map((family) => h("tbody", {},
    h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: heads.length }, h("span", {}, family))),
    ...DATA.experiments.filter((experiment) => experiment.family === family).map(line)));
  return frameOf("All experiments", h("table", { class: "experiments" },
    h("thead", {}, h("tr", {}, ...heads.map((name, place) => h("th", { scope: "col", class: place === 1 ? "about" : null }, name)))), ...families));
}

/** The best that learns, and who follows, in words. */
function findingWords(experiment) {
  const metric = experiment.metrics.success;
  const split = experiment.best.ood ? "ood" : "all";
  const rows = experiment.averages.success[split].filter((row) => row.label !== experiment.ceiling).sort((one, other) => other.value - one.value);
  const first = rows.find((row) => row.label === experiment.best[split].label);
  const second = rows.find((row) => row !== first);
  if (!first) return null;
  const sure = (row) => `${withUnit(row.value, metric)} (95 % interval ${range(row, metric)})`;
  return h("p", { class: "finding-words" },
    h("strong", {}, `${first.label} has the highest success on ${SPLIT_WORDS[split]} tasks: ${sure(first)}`),
    ` over ${plural(first.tasks, "task")}${ofExpert(first)}.`,
    second ? ` ${second.label} follows with ${sure(second)}.` : null);
}

/** The group whose map says most of an algorithm: of those with a clip, if any, where the expert (or the same on seen goals) is furthest ahead. */
function tellingGroup(experiment, label) {
  const clipped = (group) => group.clips.some((clip) => clip.label === label);
  const ahead = ({ maps }) => (maps.of[experiment.ceiling]?.ood ?? maps.of[label].iid) - maps.of[label].ood;
  const mapped = experiment.groups.filter((group) => group.maps?.of[label]);
  return mapped.sort((one, other) => clipped(other) - clipped(one) || ahead(other) - ahead(one))[0];
}

/** What the experiment with the most cells says, before all others. */
function finding() {
  const grids = DATA.experiments.filter((experiment) => experiment.best?.ood || experiment.best?.all);
  const experiment = grids.sort((one, other) => other.cells - one.cells)[0];
  if (!experiment) return null;
  const { label } = experiment.best.ood ?? experiment.best.all;
  const group = tellingGroup(experiment, label);
  const clipGroup = group?.clips.some((clip) => clip.label === label) ? group : experiment.groups.find((each) => each.clips.some((clip) => clip.label === label));
  const name = (each) => h("a", { href: groupAddress(experiment, each) }, each.label);
  const clip = clipGroup ? clipPanel(clipGroup, clipGroup.clips.find((each) => each.label === label), name(clipGroup)) : null;
  const parts = () => h("div", { class: "finding" },
    ...averagePanels(experiment, "success", ["ood", "iid"], true),
    group ? panel("maps", ["Goals reached", h("span", { class: "soft" }, name(group))],
      ...[label, experiment.ceiling].filter((each) => group.maps.of[each]).map((each) => coveragePanel(group.maps, each))) : null,
    clip);
  return [
    findingWords(experiment),
    live(parts),
    h("p", { class: "key" }, chartKey(experiment, "Dot", "band"), ceilingKey(experiment), group ? ` ${MAP_KEY}` : "", " ",
      h("a", { href: address(experiment.name) }, `All of ${experiment.name}`)),
  ];
}

function overview() {
  const episodes = DATA.experiments.reduce((sum, experiment) => sum + experiment.episodes, 0);
  return h("div", { class: "view" },
    heading("Benchmark report"),
    finding(),
    section("All experiments",
      h("p", { class: "key" }, `${plural(DATA.experiments.length, "experiment")}, ${plural(episodes, "evaluated episode")}. Every number is `
        + "computed from raw records, beside the paper’s where it has one. IID tasks lie where the dataset has been, OOD tasks where it has not. "
        + "Claims are the paper’s conclusions, as far as they could be checked."),
      experimentTable()));
}

function verdicts(experiment) {
  const known = experiment.verdicts.filter((verdict) => verdict.outcome in OUTCOMES);
  if (!experiment.verdicts.length) return null;
  const rest = experiment.verdicts.length - known.length;
  const items = known.map(({ claim, outcome, evidence }) => {
    const [mark, style] = OUTCOMES[outcome];
    return h("li", {}, h("span", { class: `mark ${style}` }, mark), h("div", {}, h("p", {}, claim), h("p", { class: "soft small" }, evidence)));
  });
  return section("The paper’s conclusions",
    h("p", { class: "soft small" }, KINDS[experiment.kind].rule
      ?? "Each is a claim about numbers, tried on resamples of the seeds: held if true in at least 97.5 % of them, not held if in at most 2.5 %, undecided otherwise. Whether one algorithm improves on another is undecided where the interval of that probability includes 1/2."),
    h("ul", { class: "verdicts" }, ...items),
    rest ? h("p", { class: "soft small" }, `${rest} of ${experiment.verdicts.length} not checked: they need cells that were not run.`) : null);
}

// Charts with one row per algorithm

/** A label that ends at x: on two small lines where one is too long for the room. */
function rowLabel(label, x, y, room) {
  const middle = (label.length - 1) / 2;
  const spaces = [...label.matchAll(/ /g)].map(({ index }) => index);
  const cut = spaces.sort((one, other) => Math.abs(one - middle) - Math.abs(other - middle))[0];
  const lines = widest([label]) <= room || cut === undefined ? [label] : [label.slice(0, cut + 1), label.slice(cut + 1)];
  const size = Math.min(lines.length > 1 ? 9.5 : 12, (12 * room) / widest(lines));
  const first = y + 4 - 5 * (lines.length - 1);
  return s("text", { "font-size": size, "text-anchor": "end" }, ...lines.map((line, place) => s("tspan", { x, y: first + 10 * place }, line)));
}

function rowChart({ title, rows, metric, bars, ceiling, spread = "95 % interval", narrow = NARROW.matches }) {
  const room = widest(rows.map((row) => row.label));
  const [width, left, step, top] = [narrow ? 290 : 380, Math.min(Math.max(60, room + 14), 170), 21, 4];
  const right = width - 46;
  const bottom = top + step * rows.length;
  const x = (value) => left + ((right - left) * Math.min(Math.max(value, 0), metric.full)) / metric.full;
  const shares = right - left < 180 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  const shapes = shares.flatMap((share) => {
    const at = x(share * metric.full);
    const text = `${+(share * metric.full * metric.times).toFixed(2)}${share === 1 ? ` ${metric.unit}` : ""}`;
    return [
      s("line", { class: "rule", x1: at, x2: at, y1: top, y2: bottom }),
      s("text", { class: "quiet", x: at, y: bottom + 14, "font-size": 10, "text-anchor": "middle" }, text),
    ];
  });
  const highest = rows.find((row) => row.label === ceiling);
  if (highest) shapes.push(s("line", { class: "ceiling", x1: x(highest.value), x2: x(highest.value), y1: top, y2: bottom }));
  rows.forEach((row, place) => {
    const y = top + step * (place + 0.5);
    const words = `${row.label}: ${withUnit(row.value, metric)}, ${spread} ${range(row, metric)}${episodeNoise(row, metric)}${ofExpert(row)}`;
    shapes.push(s("g", {},
      s("title", {}, row.paper === null ? words : `${words}; paper ${fixed(row.paper, metric)}`),
      s("rect", { x: 0, y: y - step / 2, width, height: step, fill: "transparent" }),
      rowLabel(row.label, left - 8, y, left - 10),
      bars ? s("rect", { class: "bar", x: left, y: y - 6.5, width: x(row.value) - left, height: 13, rx: 1.5 }) : null,
      s("line", { class: "range", x1: x(row.low), x2: x(row.high), y1: y, y2: y }),
      s("circle", { class: "dot", cx: x(row.value), cy: y, r: 3 }),
      row.paper === null ? null : s("path", { class: "paper", d: diamond(x(row.paper), y, 5) }),
      s("text", { x: width, y: y + 4, "font-size": 12, "text-anchor": "end" }, fixed(row.value, metric))));
  });
  const description = rows.map((row) => `${row.label} ${fixed(row.value, metric)} (${range(row, metric)})`
    + (row.paper === null ? "" : `, paper ${fixed(row.paper, metric)}`)).join("; ");
  return picture(title, description, width, bottom + 18, ...shapes);
}

const chartKey = (experiment, ours, interval) =>
  `${ours}: ours; ${interval}: 95 % interval over seeds${experiment.agreement.success ? "; ◇: the paper" : ""}.`;

const ceilingKey = ({ ceiling }) => (ceiling ? ` Dashed: ${ceiling}, which collected the data and has seen the whole space.` : "");

/** A chart of averages for each of some kinds of tasks, all in the same order. */
function averagePanels(experiment, name, splits, narrow) {
  const [metric, kinds] = [experiment.metrics[name], experiment.averages[name]];
  const leading = kinds.ood || kinds.all;
  const place = Object.fromEntries([...leading].sort((one, other) => other.value - one.value).map((row, index) => [row.label, index]));
  return splits.filter((split) => kinds[split]).map((split) => {
    const most = Math.max(...kinds[split].map((row) => row.tasks));
    const rows = kinds[split]
      .map((row) => ({ ...row, label: row.tasks < most ? `${row.label} (${row.tasks} of ${most})` : row.label, at: place[row.label] ?? 99 }))
      .sort((one, other) => one.at - other.at);
    const title = `${headed(metric)}, ${split === "all" ? "all tasks" : `${SPLITS[split]} tasks`}`;
    const caption = [title, h("span", { class: "soft" }, `${plural(most, "task")}, ${SPLIT_WORDS[split]}`)];
    return panel(split, caption, rowChart({ title: `Averages: ${title}`, rows, metric, bars: false, ceiling: experiment.ceiling, narrow }));
  });
}

function averages(experiment) {
  const draw = () => h("div", { class: "panels" }, ...averagePanels(experiment, state.metric, ["iid", "ood", "mixed", "all"]));
  return section("Averages over tasks",
    h("p", { class: "key" }, `${chartKey(experiment, "Dot", "band")} Ordered by the average over unseen tasks.`, ceilingKey(experiment)),
    h("div", { class: "controls" }, metricChoice(experiment)),
    live(draw));
}

// The table

/** What the address asks of the table, as far as this experiment has it. */
function filters(experiment) {
  const sorted = state.sort === TASK || experiment.algorithms.includes(state.sort);
  return {
    split: state.split in SPLITS ? state.split : DEFAULTS.split,
    group: experiment.groups.some((group) => group.name === state.group) ? state.group : "",
    text: state.text,
    sort: sorted ? { column: state.sort, direction: state.direction === "ascending" ? "ascending" : "descending" } : null,
  };
}

/** Every task with its numbers, as the filters leave them, in the order that is asked for. */
function tableRows(experiment, filter) {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const numbers = experiment.table[state.metric];
  const rows = experiment.groups.flatMap((group) =>
    group.tasks.map((task) => ({ group, task, cells: numbers[group.name][task.name] })),
  ).filter(({ group, task }) => {
    const text = `${group.label} ${group.name} ${task.name} ${SPLITS[task.split]}`.toLowerCase();
    return (filter.split === "all" || task.split === filter.split)
      && (!filter.group || group.name === filter.group) && words.every((word) => text.includes(word));
  });
  if (!filter.sort) return rows;
  const { column, direction } = filter.sort;
  const sign = direction === "ascending" ? 1 : -1;
  const key = ({ group, task, cells }) => (column === TASK ? `${task.name} ${group.label}` : cells[column]?.value ?? null);
  return rows.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === null || b === null) return (a === null) - (b === null); // what is not recorded comes last
    return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  });
}

/** The best of a row, and the second best if only one is best. */
function marks(cells, ceiling) {
  const learned = Object.entries(cells).filter(([label]) => label !== ceiling).map(([, cell]) => cell);
  const values = [...new Set(learned.map((cell) => cell.value))].sort((one, other) => other - one);
  const best = learned.filter((cell) => cell.value === values[0]).length;
  if (values.length < 2) return () => "";
  return (cell) => (!learned.includes(cell) ? "" : cell.value === values[0] ? "best" : best === 1 && cell.value === values[1] ? "second" : "");
}

function resultCell(experiment, { group, task, cells }, label, mark) {
  const metric = experiment.metrics[state.metric];
  const cell = cells[label];
  if (!cell) return h("td", { class: "none", tabindex: "-1" }, unseen("not recorded"), h("span", { "aria-hidden": "true" }, "·"));
  const kind = mark(cell);
  const theirs = cell.paper && h("span", { class: "theirs" }, unseen("paper "), `${fixed(cell.paper[0], metric)} ±${fixed(cell.paper[1], metric)}`,
    cell.far ? h("span", { title: "further than two of the paper’s standard deviations" }, " ≠", unseen(" far apart")) : null);
  const node = h("td", { tabindex: "-1", "data-group": group.name, "data-task": task.name, "data-label": label },
    h("span", { class: kind || null }, fixed(cell.value, metric)),
    cell.std === null ? null : h("span", { class: "spread" }, ` ±${fixed(cell.std, metric)}`), // null: a single seed
    kind ? unseen(kind === "best" ? " best" : " second best") : null,
    theirs);
  node.tip = () => cellTip(experiment, group, task, label, cell, metric);
  return node;
}

function averageRow(experiment, rows, filter) {
  const metric = experiment.metrics[state.metric];
  const mean = (values) => (values.length && values.every((value) => value !== null && value !== undefined)
    ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  const { averages, groupAverages } = experiment;
  const whole = filter.group ? filter.split === "all" && groupAverages[state.metric][filter.group] : averages[state.metric][filter.split];
  const cells = experiment.algorithms.map((label) => {
    const known = !filter.text && whole && whole.find((row) => row.label === label && row.tasks === rows.length);
    const ours = known ? known.value : mean(rows.map(({ cells }) => cells[label]?.value));
    const theirs = known ? known.paper : mean(rows.map(({ cells }) => cells[label]?.paper?.[0]));
    return h("td", {}, fixed(ours, metric), theirs === null ? null : h("span", { class: "theirs" }, unseen("paper "), fixed(theirs, metric)));
  });
  return h("tr", {}, h("th", { scope: "row" }, "Average", h("span", { class: "dataset" }, `of ${plural(rows.length, "task")} shown`)), ...cells);
}

function taskTable(experiment) {
  const caption = h("caption", { class: "unseen" });
  const [body, foot] = [[], h("tfoot")];
  const sortBy = (column) => {
    const { sort } = filters(experiment);
    const [first, second] = column === TASK ? ["ascending", "descending"] : ["descending", "ascending"];
    const mine = sort?.column === column ? sort.direction : null;
    const direction = mine === second ? "" : mine === first ? second : first; // the third time in the order of the datasets again
    choose({ sort: direction && column, direction });
    const how = { ascending: column === TASK ? "A to Z" : "lowest first", descending: column === TASK ? "Z to A" : "highest first" };
    say(direction ? `Sorted by ${column === TASK ? "task" : column}, ${how[direction]}` : "In the order of the datasets");
  };
  const columns = [TASK, ...experiment.algorithms];
  const unit = h("span", { class: "dataset" });
  const heads = columns.map((column) =>
    h("th", { scope: "col", "aria-sort": "none" }, h("button", { type: "button", click: () => sortBy(column) }, h("span", {}, ...breakable(column))), column === TASK ? unit : null),
  );
  const table = h("table", { class: columns.length > 10 ? "results dense" : "results" }, caption, h("thead", {}, h("tr", {}, ...heads)), foot);
  table.redraw = () => {
    const metric = experiment.metrics[state.metric];
    const filter = filters(experiment);
    const rows = tableRows(experiment, filter);
    unit.textContent = headed(metric);
    caption.textContent = `${headed(metric)} of every algorithm on ${plural(rows.length, "task")}: ${experiment.seeds === "1" ? "one seed" : "mean and standard deviation over seeds"}`;
    heads.forEach((head, place) => {
      head.setAttribute("aria-sort", filter.sort?.column === columns[place] ? filter.sort.direction : "none");
    });
    table.classList.toggle("ours-only", state.paper !== "shown");
    body.splice(0).forEach((part) => part.remove());
    const line = (row) => {
      const mark = marks(row.cells, experiment.ceiling);
      const name = [row.task.name, " ", badge(row.task.split), filter.sort ? h("span", { class: "dataset" }, row.group.label) : null];
      return h("tr", {}, h("th", { scope: "row" }, ...name), ...experiment.algorithms.map((label) => resultCell(experiment, row, label, mark)));
    };
    if (!rows.length) {
      body.push(h("tbody", { class: "empty" }, h("tr", {}, h("td", { colspan: heads.length }, "No task matches these filters."))));
    } else if (filter.sort) {
      body.push(h("tbody", {}, ...rows.map(line)));
    } else {
      for (const group of experiment.groups) {
        const mine = rows.filter((row) => row.group === group);
        const title = h("a", { href: groupAddress(experiment, group) }, group.label);
        const head = h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: heads.length }, h("span", {}, title)));
        if (mine.length) body.push(h("tbody", {}, head, ...mine.map(line)));
      }
    }
    body.forEach((part) => table.insertBefore(part, foot));
    foot.replaceChildren(...(rows.length ? [averageRow(experiment, rows, filter)] : []));
    table.querySelector("tbody td[tabindex]")?.setAttribute("tabindex", "0");
  };
  redraws.push(table.redraw);
  table.redraw();
  table.addEventListener("keydown", moveAmongCells);
  return table;
}

/** One cell at a time is a stop of the Tab key; arrows, Home and End go to the others. */
function moveAmongCells(event) {
  const cell = event.target.closest("tbody td");
  if (!cell) return;
  const rows = [...event.currentTarget.querySelectorAll("tbody tr:not(.group)")].map((row) => [...row.querySelectorAll("td")]);
  const row = rows.findIndex((cells) => cells.includes(cell));
  const column = rows[row].indexOf(cell);
  const last = rows[row].length - 1;
  const to = { ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], Home: [row, 0], End: [row, last] }[event.key];
  const next = to && rows[to[0]]?.[to[1]];
  if (!to) return;
  event.preventDefault();
  if (!next) return;
  cell.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

function results(experiment) {
  const present = new Set(experiment.groups.flatMap((group) => group.tasks.map((task) => task.split)));
  const splits = Object.fromEntries([["all", "All"], ...["iid", "ood", "mixed"].filter((split) => present.has(split)).map((split) => [split, SPLITS[split]])]);
  const groups = Object.fromEntries([["", "All datasets"], ...experiment.groups.map((group) => [group.name, group.label])]);
  const table = taskTable(experiment);
  const set = (name) => (value) => {
    choose({ [name]: value }, name === "text"); // no step back for every letter
    say(`${plural(table.querySelectorAll("tbody th[scope=row]").length, "task")} shown`);
  };
  const anyPaper = Object.values(experiment.agreement).some(Boolean);
  const theirs = h("input", { type: "checkbox", change: (event) => set("paper")(event.target.checked ? "shown" : "hidden") });
  const search = h("input", { type: "search", placeholder: "e.g. push far", input: (event) => set("text")(event.target.value) });
  const follow = () => {
    theirs.checked = state.paper === "shown";
    if (search.value !== state.text) search.value = state.text;
  };
  redraws.push(follow);
  follow();
  const title = fresh("table");
  return h("section", { class: "tabled", "aria-labelledby": title },
    h("h2", { id: title }, "All tasks"),
    h("p", { class: "key" }, experiment.seeds === "1" ? "One seed" : "Mean ± standard deviation over seeds", anyPaper ? ", the paper’s below. " : ". ", h("strong", {}, "Bold"), ": best of the row; ",
      h("u", {}, "underlined"), ": second best", anyPaper ? "; ≠: further than two of the paper’s standard deviations from it. " : ". ",
      "Choose a heading to sort, point at a number (or go to it with Tab and the arrow keys) to see its seeds, its interval over seeds, and the standard error that episodes alone would give it if their goals were drawn again."),
    h("div", { class: "controls" },
      metricChoice(experiment),
      Object.keys(splits).length > 2 ? choice("Tasks", splits, () => filters(experiment).split, set("split")) : null,
      experiment.groups.length > 1 ? selection("Dataset", groups, () => filters(experiment).group, set("group")) : null,
      h("label", {}, h("span", { class: "name" }, "Search"), search),
      anyPaper ? h("label", { class: "check" }, theirs, "Show the paper’s numbers") : null),
    h("div", { class: "frame", role: "region", "aria-labelledby": title, tabindex: "0" }, table));
}

// The card beside a cell

const TIP = document.getElementById("tip");
let tipFor = null;
let dismissed = null; // by Escape, until the pointer goes elsewhere

function cellTip(experiment, group, task, label, cell, metric) {
  const items = [
    ["Mean", `${fixed(cell.value, metric)}${cell.std === null ? "" : ` ± ${fixed(cell.std, metric)}`}`],
    ["95 % interval", range(cell, metric)],
    ["Episodes alone", `±${fixed(cell.noise, metric)}`],
    ["Seeds", cell.each.map((value) => fixed(value, metric)).join("  ")],
    cell.paper ? ["Paper", `${fixed(cell.paper[0], metric)} ± ${fixed(cell.paper[1], metric)}`] : null,
  ].filter(Boolean);
  const x = (value) => 6 + (228 * Math.min(Math.max(value, 0), metric.full)) / metric.full;
  const strip = s("svg", { viewBox: "0 0 240 26", "aria-hidden": "true" },
    s("line", { class: "rule", x1: 6, x2: 234, y1: 13, y2: 13 }),
    s("line", { class: "range", x1: x(cell.low), x2: x(cell.high), y1: 13, y2: 13 }),
    ...cell.each.map((value) => s("circle", { class: "dot", cx: x(value), cy: 13, r: 4, opacity: 0.6 })),
    cell.paper ? s("path", { class: "paper", d: diamond(x(cell.paper[0]), 13, 6) }) : null);
  return [
    h("p", {}, h("strong", {}, label), ` on ${group.label}, ${task.name} `, badge(task.split), h("span", { class: "soft" }, ` ${headed(metric)}`)),
    strip,
    h("dl", {}, ...items.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
  ];
}

function placeTip() {
  if (!tipFor) return;
  const [box, mine] = [tipFor.getBoundingClientRect(), TIP.getBoundingClientRect()];
  const below = box.bottom + 6 + mine.height < innerHeight || box.top < mine.height + 6;
  TIP.style.top = `${below ? box.bottom + 6 : box.top - mine.height - 6}px`;
  TIP.style.left = `${Math.max(8, Math.min(box.left + box.width / 2 - mine.width / 2, document.documentElement.clientWidth - mine.width - 8))}px`;
}

function showTip(cell) {
  hideTip();
  tipFor = cell;
  TIP.replaceChildren(...cell.tip());
  TIP.hidden = false;
  cell.setAttribute("aria-describedby", "tip");
  placeTip();
}

function hideTip() {
  tipFor?.removeAttribute("aria-describedby");
  tipFor = null;
  TIP.hidden = true;
}

const tipped = (node) => {
  const cell = node instanceof Element ? node.closest("td, .stop") : null;
  return cell && cell.tip ? cell : null;
};
document.addEventListener("pointerover", (event) => {
  if (event.pointerType === "touch" || TIP.contains(event.target)) return;
  const cell = tipped(event.target);
  if (cell && cell === dismissed) return;
  dismissed = null;
  if (cell && cell !== tipFor) showTip(cell);
  else if (!cell && tipFor && tipFor !== document.activeElement) hideTip();
});
document.addEventListener("focusin", (event) => (tipped(event.target) ? showTip(tipped(event.target)) : hideTip()));
document.addEventListener("focusout", hideTip);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !tipFor) return;
  dismissed = tipFor;
  hideTip();
});
document.addEventListener("scroll", placeTip, { capture: true, passive: true });
addEventListener("resize", placeTip);

// Experiments

function heading(title) {
  return h("h1", { tabindex: "-1" }, title);
}

function groupCards(experiment) {
  const metric = experiment.metrics.success;
  const cards = () => experiment.groups.map((group) => {
    const best = group.tasks.map((task) => {
      const all = Object.entries(experiment.table.success[group.name][task.name]).sort(([, one], [, other]) => other.value - one.value);
      const learned = all.filter(([label]) => label !== experiment.ceiling);
      const cells = learned.length ? learned : all;
      const equal = cells.filter(([, cell]) => cell.value === cells[0][1].value).length;
      const who = equal > 1 ? `${cells[0][0]} and ${equal - 1} more` : cells[0][0];
      return h("li", { class: "small" }, badge(task.split), ` ${task.name}: `, h("span", { class: "soft" }, `${who}, ${withUnit(cells[0][1].value, metric)}`));
    });
    return h("article", { class: "card" },
      h("h3", {}, h("a", { href: groupAddress(experiment, group) }, group.label)),
      h("ul", { class: "pick" }, ...best));
  });
  const inside = ["success per task", experiment.groups.some((group) => group.maps) ? "maps of the goals that are reached" : "",
    experiment.groups.some((group) => group.paths) ? "paths of the agents" : "",
    experiment.groups.some((group) => Object.keys(group.curves).length) ? "learning curves" : "",
    experiment.groups.some((group) => group.pictures.length || group.clips.length) ? "pictures and clips" : "", "all settings"].filter(Boolean);
  return section("Datasets", h("p", { class: "key" }, `With the best algorithm of each task. Inside: ${inside.join(", ")}.`), live(() => h("div", { class: "cards" }, ...cards())));
}

function frameOf(label, table) {
  return h("div", { class: "frame", role: "region", "aria-label": label, tabindex: "0" }, table);
}

function reproduction(experiment, more = "The page of each dataset has the hyper-parameters of every algorithm.") {
  const { command, datasets, versions } = experiment.reproduction;
  const head = (...names) => h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name))));
  const rows = datasets.map((each) => h("tr", {}, h("th", { scope: "row" }, each.group), h("td", {}, each.dataset.join(" ") || "none"),
    h("td", {}, !each.dataset.length ? "" : each.listed ? "as goatrl makes it" : "another file"), h("td", {}, each.evaluation.join(" "))));
  return section("Reproduction",
    h("details", {},
      h("summary", {}, rows.length ? "Command, checksums and versions" : "Command and versions"),
      h("p", {}, "These records come from"), h("pre", {}, command),
      command.includes("=FILE") ? h("p", { class: "soft small" }, "FILE stands for a dataset with the checksum below.") : null,
      rows.length === 0 ? null : frameOf("Checksums", h("table", { class: "settings" }, head("Group", "Dataset (SHA-256)", "Dataset is", "Evaluation (SHA-256)"), h("tbody", {}, ...rows))),
      frameOf("Versions", h("table", { class: "settings" }, head("Made with", "Versions"),
        h("tbody", {}, ...Object.entries(versions).map(([name, found]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, found.join(", "))))))),
      h("p", { class: "soft small" }, more)));
}

function experimentView(experiment) {
  return h("div", { class: "view" },
    heading(experiment.name),
    h("p", { class: "lead" }, experiment.about),
    h("div", { class: "card summary" }, summaryFacts(experiment)),
    averages(experiment),
    results(experiment),
    verdicts(experiment),
    groupCards(experiment),
    reproduction(experiment));
}

// Groups

function taskBars(experiment, group) {
  const draw = () => {
    const metric = experiment.metrics[state.metric];
    const panels = group.tasks.map((task) => {
      const cells = experiment.table[state.metric][group.name][task.name];
      const rows = experiment.algorithms.filter((label) => cells[label]).map((label) => ({ ...cells[label], label, paper: cells[label].paper?.[0] ?? null }));
      const caption = [task.name, " ", badge(task.split), h("span", { class: "soft" }, `${headed(metric)}, ${plural(task.episodes, "episode")} per seed`)];
      return panel(task.split, caption, rowChart({ title: `${headed(metric)} on ${task.name}, ${SPLITS[task.split]}`, rows, metric, bars: true }));
    });
    return h("div", { class: panels.length === 4 ? "panels pairs" : "panels" }, ...panels);
  };
  return section("Tasks", h("p", { class: "key" }, chartKey(experiment, "Bar", "line")), h("div", { class: "controls" }, metricChoice(experiment)), live(draw));
}

/** Where the name of a region stands: as far inside it as possible. */
function inside(map, seen) {
  const squares = map.seen.map((value, place) => ({ value, column: place % map.columns, row: Math.floor(place / map.columns) }));
  const [mine, others] = [squares.filter((square) => !!square.value === seen), squares.filter((square) => !!square.value !== seen)];
  if (!mine.length) return null;
  const depth = (one) => Math.min(...others.map((other) => Math.hypot(one.column - other.column, one.row - other.row)), 99);
  const deepest = Math.max(...mine.map(depth));
  const best = mine.filter((square) => depth(square) >= deepest - 0.5);
  const [x, y] = ["column", "row"].map((name) => best.reduce((sum, square) => sum + square[name], 0) / best.length);
  const near = best.sort((one, other) => Math.hypot(one.column - x, one.row - y) - Math.hypot(other.column - x, other.row - y))[0];
  const at = [Math.min(Math.max(near.column + 0.5, 1.4), map.columns - 1.4), Math.min(Math.max(near.row + 0.9, 1.2), map.rows - 0.4)];
  const covered = map.start && Math.hypot(at[0] - map.start[0], at[1] - 0.4 - map.start[1]) < 1.6; // by the mark of the start
  return covered ? [at[0], at[1] + (at[1] > map.rows / 2 ? -2 : 2)] : at;
}

function mapPicture(map, title, description, squares, marks) {
  const border = map.border.map(([[x, y], [u, v]]) => `M${x} ${y}L${u} ${v}`).join("");
  return picture(title, description, map.columns, map.rows,
    s("rect", { class: "sheet", width: map.columns, height: map.rows }),
    ...squares,
    s("rect", { class: "edge", width: map.columns, height: map.rows }),
    s("path", { class: "border-under", d: border }),
    s("path", { class: "border", d: border }),
    ...marks);
}

const MAP_KEY = "Maps: from one start to a grid of goals; the darker a square, the more seeds reach its goal; dotted: the border of the goals that the data has seen.";
const mapSquare = (map, place, attributes, ...children) =>
  s("rect", { x: place % map.columns, y: Math.floor(place / map.columns), width: 1.01, height: 1.01, ...attributes }, ...children);

/** What an algorithm reaches. */
function coveragePanel(map, label) {
  const mine = map.of[label];
  const parts = [["IID", mine.iid], ["OOD", mine.ood]].filter(([, share]) => share !== null).map(([name, share]) => `${name} ${share} %`);
  const squares = mine.squares.map((percent, place) => mapSquare(map, place, { class: "square", "fill-opacity": percent / 100 },
    s("title", {}, `${map.seen[place] ? "IID" : "OOD"}: ${percent} % of ${plural(mine.seeds, "seed")}`)));
  const shares = h("span", { class: "soft shares" }, ...parts.map((part) => h("span", {}, part)));
  return panel("", [label, shares], mapPicture(map, `Coverage of ${label}`, `Goals reached: ${parts.join(" · ")}`, squares, []));
}

function coverage(group) {
  const map = group.maps;
  if (!map) return null;
  const names = [[true, "IID"], [false, "OOD"]].map(([seen, text]) => [inside(map, seen), text]).filter(([at]) => at)
    .map(([[x, y], text]) => s("text", { class: "region-name", x, y, "font-size": 1, "text-anchor": "middle" }, text));
  const begin = map.start ? [s("circle", { class: "begin", cx: map.start[0], cy: map.start[1], r: 0.32 })] : [];
  const key = panel("", ["Key", map.start ? h("span", { class: "soft" }, "● start") : null], mapPicture(map, "Key of the maps", "Which squares are IID and which OOD",
    map.seen.map((seen, place) => mapSquare(map, place, { class: seen ? "inside" : "outside" })), [...begin, ...names]));
  const ramp = h("span", { class: "ramp", "aria-hidden": "true" }, ...[0, 0.25, 0.5, 0.75, 1].map((share) => h("i", {}, h("b", { style: `opacity:${share}` }))));
  const view = map.fromAbove ? "Seen from above, with the robot at the upper edge" : "Seen from the front, opposite the robot";
  return section("Coverage of goals",
    h("p", { class: "key" }, "From one start, to a grid of goals. The darker a square, the more seeds reach its goal: none ", ramp,
      ` all. Dotted: the line between goals that the data has seen (IID) and has not (OOD). ${view}.`),
    h("div", { class: "panels small-ones" }, key, ...Object.keys(map.of).map((label) => coveragePanel(map, label))));
}

function paths(group) {
  if (!group.paths) return null;
  const tasks = Object.fromEntries(Object.keys(group.paths).map((name) => [name, name]));
  const current = () => (state.goals in tasks ? state.goals : Object.keys(tasks)[0]);
  const box = live(() => {
    const task = current();
    const { width, of } = group.paths[task];
    const panels = Object.entries(of).map(([label, { reached, missed, goals }]) => {
      const [met, tries] = goals.reduce(([m, n], [, , more, all]) => [m + more, n + all], [0, 0]);
      const text = `${Math.round((100 * met) / tries)} % reached`;
      const stars = goals.map(([x, y, more, all]) =>
        s("circle", { class: "goal", cx: x, cy: y, r: 6, "fill-opacity": more / all }, s("title", {}, `reached in ${more} of ${all} episodes`)));
      return panel("", [label, h("span", { class: "soft" }, text)], picture(`Paths of ${label} on ${task}`, text, width, width,
        s("line", { class: "horizon", x1: 0, x2: width, y1: width / 2, y2: width / 2 }),
        s("path", { class: "missed", d: missed }), s("path", { class: "reached", d: reached }), ...stars));
    });
    return h("div", { class: "panels small-ones" }, ...panels);
  });
  return section("Paths",
    h("p", { class: "key" }, "Every episode of every seed, from the centre. Solid: the goal is met at the end; dashed: it is not. Circles are goals, "
      + "the fuller the more often met."),
    Object.keys(tasks).length > 1 ? h("div", { class: "controls" }, choice("Goals", tasks, current, (goals) => choose({ goals }))) : null,
    box);
}

function curvePanel(label, [mean, low, high], updates, name) {
  const [width, height, left, bottom] = [230, 140, 46, 120];
  const known = [...low, ...high].filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const span = most - least || Math.abs(most) || 1;
  const x = (place) => left + ((width - left - 4) * (place + 1)) / mean.length;
  const y = (value) => 6 + (bottom - 6) * (1 - (value - least) / span);
  const points = (line) => line.map((value, place) => (value === null ? null : `${x(place).toFixed(1)} ${y(value).toFixed(1)}`)).filter(Boolean);
  const text = `${name} from ${short(mean[0])} to ${short(mean.at(-1))}, mean over seeds`;
  return panel("", label, picture(`${label}: ${name}`, text, width, height,
    s("line", { class: "rule", x1: left, x2: width, y1: bottom, y2: bottom }),
    s("line", { class: "rule", x1: left, x2: left, y1: 4, y2: bottom }),
    s("path", { class: "band", d: `M${[...points(low), ...points(high).reverse()].join("L")}Z` }),
    s("path", { class: "course", d: `M${points(mean).join("L")}` }),
    ...[[most, 6], [least, bottom]].map(([value, at]) => s("text", { class: "quiet", x: left - 4, y: at + 4, "font-size": 10, "text-anchor": "end" }, short(value))),
    s("text", { class: "quiet", x: left, y: height - 4, "font-size": 10 }, "0"),
    s("text", { class: "quiet", x: width, y: height - 4, "font-size": 10, "text-anchor": "end" }, `${updates.toLocaleString("en")} updates`)));
}

function curves(group) {
  const names = [...new Set(Object.values(group.curves).flatMap((mine) => Object.keys(mine)))];
  if (!names.length) return section("Learning curves", h("p", { class: "soft" }, "These records were made without learning curves."));
  const title = (name) => name.replaceAll("_", " ");
  const current = () => (names.includes(state.curve) ? state.curve : names[0]);
  const box = live(() => h("div", { class: "panels middle" }, ...Object.entries(group.curves).filter(([, mine]) => mine[current()])
    .map(([label, mine]) => curvePanel(label, mine[current()], group.updates, title(current())))));
  const options = Object.fromEntries(names.map((each) => [each, title(each)]));
  return section("Learning curves",
    h("p", { class: "key" }, "Line: mean over seeds; band: from the lowest to the highest seed. Each panel has its own scale: losses of different algorithms "
      + "are different quantities."),
    h("div", { class: "controls" }, selection("Quantity", options, current, (curve) => choose({ curve }))),
    box);
}

/** A clip as the browser likes it best: bytes under an address of their own. */
function clipAddress(source) {
  const [about, content] = source.split(",");
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  media.push(URL.createObjectURL(new Blob([bytes], { type: about.slice(5).split(";")[0] })));
  return media.at(-1);
}

/** A clip of one agent. */
function clipPanel(group, { label, task, source }, where = null) {
  const split = group.tasks.find((each) => each.name === task)?.split;
  const video = h("video", { controls: true, playsinline: true, preload: "metadata", "aria-label": `${label} on ${task}` });
  video.muted = true;
  setTimeout(() => (video.src = clipAddress(DATA.media[source]))); // the rest of the view comes first
  const about = h("span", { class: "soft" }, where, where && ". ", "One agent. A green frame at the end: goal met; a red one: missed");
  return panel("clip", [`${label} on ${task} `, split ? badge(split) : null, about], video);
}

function pictures(group) {
  if (!group.pictures.length && !group.clips.length) return null;
  const clips = group.clips.map((clip) => clipPanel(group, clip));
  const images = group.pictures.map(({ title, about, source }) => panel("wide", title, h("img", { src: DATA.media[source], alt: about })));
  return section("Pictures", h("div", { class: "panels" }, ...images, ...clips));
}

function settings(experiment, group, title = "Settings") {
  const labels = experiment.algorithms.filter((label) => group.settings.some((row) => label in row.of));
  const rows = group.settings.map(({ name, of }) => h("tr", {}, h("th", { scope: "row" }, name), ...labels.map((label) => h("td", {}, of[label] ?? ""))));
  return section(title,
    h("details", {},
      h("summary", {}, "Hyper-parameters and versions of every algorithm"),
      frameOf(title, h("table", { class: "settings" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Setting"), ...labels.map((label) => h("th", { scope: "col" }, label)))),
        h("tbody", {}, ...rows)))));
}

function groupView(experiment, group) {
  const place = experiment.groups.indexOf(group);
  const link = (other, text) => (other ? h("a", { href: groupAddress(experiment, other) }, text(other.label)) : null);
  return h("div", { class: "view" },
    h("nav", { class: "crumbs", "aria-label": `Around ${group.label}` },
      h("a", { href: address(experiment.name) }, `← ${experiment.name}`),
      live(() => h("span", { class: "pick" }, link(experiment.groups[place - 1], (name) => `‹ ${name}`), link(experiment.groups[place + 1], (name) => `${name} ›`)))),
    heading(group.label),
    h("ul", { class: "pick" }, ...group.tasks.map((task) => h("li", {}, `${task.name} `, badge(task.split)))),
    taskBars(experiment, group),
    coverage(group),
    paths(group),
    curves(group),
    pictures(group),
    settings(experiment, group));
}

KINDS.grid = { best: bestLine, view: experimentView, groupView };

// Which view

/** The experiment of this name, or the only one. */
const experimentNamed = (name) => DATA.experiments.find((each) => each.name === name) || (DATA.experiments.length === 1 ? DATA.experiments[0] : null);

function view(parts) {
  if (parts[0] === "everything") {
    const all = DATA.experiments.flatMap((experiment) => {
      const kind = KINDS[experiment.kind];
      return [kind.view(experiment), ...(kind.groupView ? experiment.groups.map((group) => kind.groupView(experiment, group)) : [])];
    });
    return ["Everything", [overview(), ...all]];
  }
  const experiment = experimentNamed(parts[0]);
  if (!experiment) return ["Benchmark report", [overview()]];
  const kind = KINDS[experiment.kind];
  const group = kind.groupView && experiment.groups.find((each) => each.name === parts[1]);
  return group ? [`${group.label}, ${experiment.name}`, [kind.groupView(experiment, group)]] : [experiment.name, [kind.view(experiment)]];
}

/** What the address says: the parts of its path, and what was chosen there. */
function readAddress() {
  const [path, query = ""] = location.hash.startsWith("#/") ? location.hash.slice(2).split("?") : [""];
  const chosen = Object.fromEntries(new URLSearchParams(query));
  const moved = path !== shown.path;
  if (!moved && query === shown.query) return null;
  Object.assign(shown, { path, query });
  for (const [name, usual] of Object.entries(DEFAULTS)) state[name] = chosen[name] ?? usual;
  if (!DATA.experiments.some((experiment) => state.metric in (experiment.metrics ?? {}))) state.metric = DEFAULTS.metric;
  return { moved, parts: path.split("/").filter(Boolean).map(decodeURIComponent) };
}

/** Links to the experiments of the same family. */
function showLinks(name) {
  const shownOne = experimentNamed(name);
  const near = DATA.experiments.filter((experiment) => experiment.family === shownOne?.family);
  const link = (to, text, current) => h("li", {}, h("a", { href: to, "aria-current": current ? "page" : null }, text));
  const all = DATA.experiments.length > 1 ? link("#/", "All experiments", name === undefined) : null;
  const list = h("ul", {}, all, ...near.map((each) => link(address(each.name), each.name, each === shownOne)));
  document.getElementById("experiments").replaceChildren(list);
  const current = list.querySelector("[aria-current]");
  if (current) list.scrollLeft += current.getBoundingClientRect().left - list.getBoundingClientRect().left; // on a phone the list is one long line
}

function show(first) {
  const found = readAddress();
  if (!found) return;
  hideTip();
  if (!found.moved) return changed();
  redraws = [];
  media.splice(0).forEach((each) => URL.revokeObjectURL(each));
  const [title, nodes] = view(found.parts);
  document.title = `${title} – goatrl report`;
  MAIN.replaceChildren(...nodes);
  showLinks(found.parts[0]);
  if (first) return;
  scrollTo(0, 0);
  MAIN.querySelector("h1").focus({ preventScroll: true });
}

function themeButton() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = (() => { try { return localStorage.getItem("goatrl-theme"); } catch { return null; } })();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => (button.textContent = isDark() ? "Light colours" : "Dark colours");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("goatrl-theme", root.dataset.theme); } catch { /* the choice lasts as long as the page */ }
    name();
  });
  dark.addEventListener("change", name);
  name();
}

function start() {
  document.getElementById("made").textContent = `Made from the records in “${DATA.folder}” by goatrl ${DATA.version}.`;
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    MAIN.focus();
  });
  themeButton();
  NARROW.addEventListener("change", changed);
  addEventListener("hashchange", () => (location.hash === "" || location.hash.startsWith("#/")) && show(false));
  show(true);
}

start();
