"use strict";

// The view of an experiment in online fine-tuning. It is drawn with the parts in page.js, which comes after it.

const stepsText = (steps) => (steps === null ? "never" : steps.toLocaleString("en"));
const stepsRange = ({ low, high }) => `${stepsText(low)} to ${stepsText(high)}`;
const percent = (value) => `${value.toFixed(1)} %`;
const percentRange = ({ low, high }) => `${low.toFixed(1)} to ${high.toFixed(1)}`;
const tone = (experiment, label) => `--tone: var(--series-${experiment.tones[label] % 11})`;
const swatch = (experiment, label) => h("i", { class: label === experiment.random ? "swatch dashed" : "swatch", style: tone(experiment, label), "aria-hidden": "true" });

/** Who is first where random networks end: the initialisations with the fewest steps. */
function fastest(experiment, group) {
  const there = group.rows.filter((row) => row.label !== experiment.random && row.reached && row.reached.value !== null);
  const fewest = Math.min(...there.map((row) => row.reached.value));
  return { steps: there.length ? fewest : null, labels: there.filter((row) => row.reached.value === fewest).map((row) => row.label) };
}

function tuningFacts(experiment) {
  const first = experiment.groups.filter((group) => group.level !== null).map((group) => {
    const { steps, labels } = fastest(experiment, group);
    const who = labels.length > 1 ? `${labels[0]} and ${labels.length - 1} more` : labels[0];
    return [`First where random ends, ${group.label}`, ...(steps === null ? ["none"] : [who, " ", h("span", { class: "soft" }, plural(steps, "step"))])];
  });
  return facts(
    ["Datasets", `${experiment.groups.length}`, h("span", { class: "soft" }, experiment.groups.length < experiment.datasets ? ` of ${experiment.datasets}` : "")],
    ["Initialisations", `${experiment.algorithms.length}`],
    ["Seeds", experiment.seeds],
    ["Environment steps", experiment.steps.toLocaleString("en")],
    ["Evaluated episodes", experiment.episodes.toLocaleString("en")],
    ...first,
    outcomes(experiment),
  );
}

/** Rising places, moved as little as needed to be `gap` apart and at most `most`. */
function apart(places, gap, most) {
  const found = [];
  for (const place of places) found.push(found.length ? Math.max(place, found.at(-1) + gap) : place);
  for (let at = found.length - 1; at >= 0; at--) found[at] = Math.min(found[at], at === found.length - 1 ? most : found[at + 1] - gap);
  return found;
}

/** About four round numbers up to the last. */
function ticks(last) {
  const rough = last / 4 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((each) => each >= rough);
  return Array.from({ length: Math.floor(last / step) + 1 }, (_, place) => place * step);
}

function tuningChart(experiment, group) {
  const [width, height, left, top] = NARROW.matches ? [290, 250, 40, 8] : [560, 320, 42, 8];
  const [right, bottom] = [width - widest(group.rows.map((row) => row.label)) - 16, height - 22];
  const last = Math.max(...group.rows.map((row) => row.steps.at(-1)), 1);
  const x = (steps) => left + ((right - left) * steps) / last;
  const y = (success) => bottom - ((bottom - top) * success) / 100;
  const points = (row, line) => line.map((value, place) => `${x(row.steps[place]).toFixed(1)} ${y(value).toFixed(1)}`);
  const shapes = [0, 25, 50, 75, 100].flatMap((success) => [
    s("line", { class: "rule", x1: left, x2: right, y1: y(success), y2: y(success) }),
    s("text", { class: "quiet", x: left - 5, y: y(success) + 4, "font-size": 10, "text-anchor": "end" }, success < 100 ? `${success}` : "100 %"),
  ]);
  const marked = ticks(last);
  for (const steps of marked) {
    const unit = steps === marked.at(-1) ? " steps" : "";
    shapes.push(s("text", { class: "quiet", x: x(steps), y: bottom + 15, "font-size": 10, "text-anchor": "middle" }, `${last < 2000 || !steps ? steps : `${+(steps / 1000).toFixed(1)}k`}${unit}`));
  }
  if (group.level !== null) shapes.push(s("line", { class: "level", x1: left, x2: right, y1: y(group.level), y2: y(group.level) }));
  for (const row of group.rows) {
    shapes.push(s("path", { class: "tuned-band", style: tone(experiment, row.label), d: `M${[...points(row, row.low), ...points(row, row.high).reverse()].join("L")}Z` }));
  }
  for (const row of group.rows) {
    const dashed = row.label === experiment.random ? " dashed" : "";
    const at = row.reached && row.reached.value !== null ? row.steps.indexOf(row.reached.value) : -1;
    shapes.push(s("g", { style: tone(experiment, row.label) },
      s("path", { class: `tuned${dashed}`, d: `M${points(row, row.mean).join("L")}` }),
      at < 0 ? null : s("circle", { class: "ring", cx: x(row.steps[at]), cy: y(row.mean[at]), r: 3.6 })));
  }
  const named = [...group.rows].sort((one, other) => other.mean.at(-1) - one.mean.at(-1));
  const heights = apart(named.map((row) => y(row.mean.at(-1)) + 4), 14, bottom + 4);
  named.forEach((row, place) => shapes.push(
    s("path", { class: "leader", style: tone(experiment, row.label), d: `M${x(row.steps.at(-1))} ${y(row.mean.at(-1))}L${right + 8} ${heights[place] - 4}` }),
    s("text", { x: right + 12, y: heights[place], "font-size": 12 }, row.label)));
  const drawn = { x, y, top, bottom, left, right };
  const ends = group.rows.map((row) => `${row.label} from ${percent(row.mean[0])} to ${percent(row.mean.at(-1))}`).join("; ");
  const about = `${group.level === null ? "" : `Random networks end at ${percent(group.level)}. `}${ends}. Arrow keys go from evaluation to evaluation.`;
  const chart = picture(`${group.label}: success while agents go on online`, about, width, height, ...shapes, ...stops(experiment, group, drawn));
  chart.setAttribute("role", "group"); // evaluations inside can be read one by one
  chart.addEventListener("keydown", moveAmongStops);
  return chart;
}

/** A stripe for every evaluation, which shows the values of all lines there. */
function stops(experiment, group, { x, y, top, bottom, left, right }) {
  const steps = [...new Set(group.rows.flatMap((row) => row.steps))].sort((one, other) => one - other);
  return steps.map((at, place) => {
    const here = group.rows.map((row) => ({ row, index: row.steps.indexOf(at) })).filter(({ index }) => index >= 0)
      .sort((one, other) => other.row.mean[other.index] - one.row.mean[one.index]);
    const [from, to] = [place ? (x(steps[place - 1]) + x(at)) / 2 : left, place < steps.length - 1 ? (x(at) + x(steps[place + 1])) / 2 : right];
    const words = here.map(({ row, index }) => `${row.label} ${percent(row.mean[index])}`).join(", ");
    const stop = s("g", { class: "stop", role: "img", tabindex: place ? "-1" : "0", "aria-label": `${plural(at, "environment step")}: ${words}` },
      s("rect", { x: from, y: top, width: Math.max(to - from, 1), height: bottom - top, fill: "transparent" }),
      s("line", { class: "cursor", x1: x(at), x2: x(at), y1: top, y2: bottom }),
      ...here.map(({ row, index }) => s("circle", { class: "cursor-dot", style: tone(experiment, row.label), cx: x(at), cy: y(row.mean[index]), r: 3.4 })));
    stop.tip = () => [
      h("p", {}, h("strong", {}, plural(at, "environment step")), ` of each seed, ${group.label}: success in %`),
      h("dl", { class: "stop-values" }, ...here.flatMap(({ row, index }) => [
        h("dt", {}, swatch(experiment, row.label), row.label),
        h("dd", {}, row.mean[index].toFixed(1), h("span", { class: "soft" }, ` ${percentRange({ low: row.low[index], high: row.high[index] })}`)),
      ])),
    ];
    return stop;
  });
}

/** One evaluation of a chart is a stop of the Tab key; arrows, Home and End go to the others. */
function moveAmongStops(event) {
  const all = [...event.currentTarget.querySelectorAll(".stop")];
  const place = all.indexOf(event.target.closest(".stop"));
  const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[event.key];
  if (place < 0 || to === undefined) return;
  event.preventDefault();
  if (!all[to]) return;
  all[place].setAttribute("tabindex", "-1");
  all[to].setAttribute("tabindex", "0");
  all[to].focus();
}

function tuningCurves(experiment) {
  const random = experiment.groups.some((group) => group.level !== null);
  const panels = () => h("div", { class: "panels wide-ones" }, ...experiment.groups.map((group) => panel("", [
    group.label,
    h("span", { class: "soft" }, `Success without noise (%) in ${group.tasks.map((task) => task.name).join(", ")}, by environment steps of each seed`),
  ], tuningChart(experiment, group))));
  return section("Success while agents go on online",
    h("p", { class: "key" }, "Line: mean over seeds; band: 95 % interval over seeds", random ? "; dotted: where random networks end; ring: the first evaluation that is as high. " : ". ",
      "Point at a chart (or go to it with Tab and the arrow keys) to see the values of an evaluation."),
    live(panels));
}

function tuningTable(experiment) {
  const heads = ["Initialisation", "At first (%)", "In the end (%)", "95 % interval (%)", "Steps to where random ends", "95 % interval (steps)", "Seeds there", "Each seed (steps)"];
  const line = (group, row) => {
    const { reached, each } = row;
    const there = each.filter((steps) => steps !== null).length;
    const best = reached && fastest(experiment, group).labels.includes(row.label);
    const steps = reached ? [
      h("td", {}, h("span", { class: best ? "best" : null }, stepsText(reached.value)), best ? unseen(" fewest") : null),
      h("td", {}, stepsRange(reached)), h("td", {}, `${there} of ${each.length}`), h("td", { class: "soft" }, each.map(stepsText).join(" · ")),
    ] : [h("td", { colspan: 4, class: "soft" }, "no random networks of the same tasks and episodes are recorded")];
    return h("tr", {}, h("th", { scope: "row" }, swatch(experiment, row.label), row.label), h("td", {}, row.start.value.toFixed(1)),
      h("td", {}, row.final.value.toFixed(1)), h("td", {}, percentRange(row.final)), ...steps);
  };
  const bodies = experiment.groups.map((group) => h("tbody", {},
    h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: heads.length }, h("span", {}, group.label,
      group.level === null ? null : h("span", { class: "soft" }, ` random ends at ${percent(group.level)}`)))),
    ...group.rows.map((row) => line(group, row))));
  return section("Steps to where random networks end",
    h("p", { class: "key" }, `The end is the mean of the last ${experiment.last} evaluations. Steps are those of the environment, of one seed, up to the first evaluation that `
      + "is as high as random networks are in the end: of the mean curve, with its interval over seeds (where random networks end is resampled as well), and of "
      + "each seed’s own curve. ", h("strong", {}, "Bold"), ": the fewest."),
    frameOf("Steps to where random networks end", h("table", { class: "results reach" },
      h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))), ...bodies)));
}

function tuningView(experiment) {
  return h("div", { class: "view" },
    heading(experiment.name),
    h("p", { class: "lead" }, experiment.about),
    h("div", { class: "card summary" }, tuningFacts(experiment)),
    tuningCurves(experiment),
    tuningTable(experiment),
    verdicts(experiment),
    reproduction(experiment, "How each initialisation was trained and went on is below."),
    ...experiment.groups.map((group) => settings(experiment, group, `Settings, ${group.label}`)));
}

/** Who is first where random networks end, in the first group where that is known. */
function firstThere(experiment) {
  const group = experiment.groups.find((each) => each.level !== null && fastest(experiment, each).steps !== null);
  if (!group) return ["–"];
  const { steps, labels } = fastest(experiment, group);
  const others = labels.length > 1 ? `, and ${labels.length - 1} more` : "";
  return [`${labels[0]} ${plural(steps, "step")} `, h("span", { class: "soft" }, `to where random ends${others}; ${group.label}`)];
}

KINDS.finetune = { best: firstThere, view: tuningView };
