"use strict";

// How experiments are shown, by their kind: `best` is what its line among all experiments says is best in
// it, `view` is its own view, `groupView` that of one of its groups, if it has such, and `rule` says how its claims are decided. Every kind adds itself, in a file of its own.
const KINDS = {};
