"use strict";

// The view of a user's own runs. It is drawn with the parts in page.js, which comes after it.

function runsFacts(experiment) {
  return facts(
    ["Runs", `${experiment.rows.length}`],
    ["Seeds", experiment.seeds],
    ["Episodes", experiment.episodes.toLocaleString("en")],
  );
}

function runsTable(experiment) {
  const metrics = Object.entries(experiment.metrics);
  const numbers = (found, metric) => [fixed(found.value, metric), " ", h("span", { class: "soft" }, `${range(found, metric)}`)];
  const heads = ["Run", ...experiment.columns, "Seeds",
    ...experiment.places.flatMap((place) => metrics.map(([, metric]) => `${headed(metric)}, ${place}`)), "Better than the first (probability)"];
  const line = (row) => h("tr", {},
    h("th", { scope: "row" }, row.name, row.label.startsWith("run ") ? h("span", { class: "soft" }, ` (${row.label})`) : null),
    ...row.differs.map((value) => h("td", {}, value)),
    h("td", {}, `${row.seeds}`),
    ...experiment.places.flatMap((place) => metrics.map(([name, metric]) => h("td", {}, ...numbers(row.places[place][name], metric)))),
    h("td", {}, ...(row.better ? numbers(row.better, { decimals: 2, times: 1 }) : ["–"])));
  return frameOf("Runs", h("table", { class: "results" },
    h("thead", {}, h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...experiment.rows.map(line))));
}

function runsView(experiment) {
  const draw = () => {
    const metric = experiment.metrics[state.metric];
    const panels = experiment.places.map((place) => {
      const rows = experiment.rows.map((row) => ({ label: row.label, ...row.places[place][state.metric], paper: null }));
      return panel("all", [headed(metric), h("span", { class: "soft" }, place)], rowChart({ title: `${headed(metric)}, ${place}`, rows, metric, bars: false }));
    });
    return h("div", { class: "panels" }, ...panels);
  };
  return h("div", { class: "view" },
    heading(experiment.name),
    h("p", { class: "lead" }, "Runs of goat train beside each other, on the episodes that all were evaluated on."),
    ...experiment.notes.map((note) => h("p", { class: "soft small" }, note)),
    h("div", { class: "card summary" }, runsFacts(experiment)),
    section("Success and return",
      h("p", { class: "key" }, "Dot: mean over tasks; band: 95 % interval over seeds."),
      h("div", { class: "controls" }, metricChoice(experiment)),
      live(draw)),
    section("All numbers",
      h("p", { class: "key" }, "What differs between the runs, means with 95 % intervals over seeds, and the chance that a seed has more success than one of the first run, over all tasks."),
      runsTable(experiment)));
}

/** The run with the most success where goals are least like the data's. */
function bestRun(experiment) {
  const place = experiment.places.at(-1);
  const value = (row) => row.places[place].success.value;
  const best = [...experiment.rows].sort((one, other) => value(other) - value(one))[0];
  return [`${best.label} ${withUnit(value(best), experiment.metrics.success)} `, h("span", { class: "soft" }, place)];
}

KINDS.runs = { best: bestRun, view: runsView };
