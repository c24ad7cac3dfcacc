"use strict";

// The view of training times. It is drawn with the parts in page.js, which comes after it.

function timingFacts(experiment) {
  const sorted = [...experiment.rows].sort((one, other) => one.value - other.value);
  const named = (row) => [row.label, " ", h("span", { class: "soft" }, `${row.value.toFixed(1)} s`)];
  return facts(
    ["Algorithms", `${experiment.algorithms.length}`],
    ["Shortest", ...named(sorted[0])],
    ["Longest", ...named(sorted.at(-1))],
    outcomes(experiment),
  );
}

/** The next round number. */
function ceiling(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map((factor) => factor * unit).find((each) => each >= value);
}

function timingView(experiment) {
  const rows = [...experiment.rows].sort((one, other) => one.value - other.value).map((row) => ({ ...row, paper: null }));
  const metric = { unit: "s", decimals: 1, times: 1, full: ceiling(Math.max(...rows.map((row) => row.high))) };
  const chart = () => panel("all", ["Training time (s)", h("span", { class: "soft" }, experiment.of)],
    rowChart({ title: "Training time (s)", rows, metric, bars: true, spread: "by chunk" }));
  const heads = ["Algorithm", "Time (s)", "By chunk (s)", `× ${experiment.base}`];
  const line = (row) => h("tr", {}, h("th", { scope: "row" }, row.label), h("td", {}, row.value.toFixed(1)),
    h("td", {}, `${row.low.toFixed(1)} to ${row.high.toFixed(1)}`), h("td", {}, row.ratio === null ? "–" : row.ratio.toFixed(2)));
  return h("div", { class: "view" },
    heading(experiment.name),
    h("p", { class: "lead" }, experiment.about),
    h("div", { class: "card summary" }, timingFacts(experiment)),
    section("Training time",
      h("p", { class: "key" }, `Bar: ${experiment.of}, without compilation, from the median of some chunks of updates; line: from the shortest and the longest chunk.`),
      live(() => h("div", { class: "panels" }, chart()))),
    section("All numbers",
      h("p", { class: "key" }, `× ${experiment.base}: a multiple of its time.`),
      frameOf("Training time", h("table", { class: "results" },
        h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows.map(line))))),
    verdicts(experiment),
    reproduction(experiment, "Episodes are made up, as many as a dataset of Push has: times do not depend on what is in them."));
}

/** The algorithm that trains in the shortest time. */
function shortest(experiment) {
  const [first] = [...experiment.rows].sort((one, other) => one.value - other.value);
  return [`${first.label} ${first.value.toFixed(1)} s `, h("span", { class: "soft" }, "shortest")];
}

KINDS.timing = {
  best: shortest,
  view: timingView,
  rule: "Each is a claim about times: decided where the chunks of two algorithms do not overlap.",
};
