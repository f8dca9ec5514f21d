"use strict";
// Data of the page: compressed sections of the document, which are unpacked at their first use.

const CHANCE = -1, TERMINAL = -4, NONE = -1;
const TYPES = {i1: Int8Array, u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array};
const sections = new Map();

async function unpack(element) {
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Returns a promise of a section: an object of arrays by name, or the value of its JSON.
function section(name) {
  if (!sections.has(name)) sections.set(name, readSection(name));
  return sections.get(name);
}

async function readSection(name) {
  const element = document.getElementById("data-" + name);
  if (!element) return null;
  const buffer = await unpack(element);
  element.textContent = "";
  if (!element.dataset.layout) return JSON.parse(new TextDecoder().decode(buffer));
  const arrays = {};
  let offset = 0;
  for (const field of element.dataset.layout.split(" ")) {
    const [key, type, size] = field.split(":");
    arrays[key] = new TYPES[type](buffer, offset, Number(size));
    offset += arrays[key].byteLength;
  }
  return arrays;
}

// Tree of histories or public states; `Tree` of page_content.py, with parents and reach probabilities.
class Tree {
  constructor(arrays, players) {
    Object.assign(this, arrays);
    this.players = players;
    this.size = this.mover.length;
    this.parent = new Int32Array(this.size).fill(NONE);
    this.reach = new Float64Array(this.size);
    this.reach[0] = 1;
    for (let node = 0; node < this.size; node++) {
      const end = this.first_child[node] + this.num_children[node];
      for (let child = this.first_child[node]; child < end; child++) {
        this.parent[child] = node;
        this.reach[child] = this.reach[node] * this.probability[child];
      }
    }
  }

  // The nodes from the root to a node, both included.
  path(node) {
    const result = [];
    for (; node !== NONE; node = this.parent[node]) result.unshift(node);
    return result;
  }

  children(node) {
    return Array.from({length: this.num_children[node]}, (_, i) => this.first_child[node] + i);
  }

  // A player's expected payoff from a node on. In postflop hold'em, the chips it wins from here on: a fold wins 0.
  value(node, player) {
    const at = node * this.players + player;
    return this.values[at] + (this.counted ? this.spent[at] : 0);
  }

  // The probability of a node if a player plays to reach it: the product of the probabilities of all other moves.
  counterfactualReach(node, player) {
    let result = 1;
    for (; this.parent[node] !== NONE; node = this.parent[node]) {
      if (this.mover[this.parent[node]] !== player) result *= this.probability[node];
    }
    return result;
  }

  // The nodes whose infoset or public state is a row, likeliest first.
  nodesOf(row) {
    if (!this.starts) {
      const numRows = this.row.reduce((most, value) => Math.max(most, value), NONE) + 1;
      this.starts = new Int32Array(numRows + 1);
      for (const value of this.row) if (value !== NONE) this.starts[value + 1]++;
      for (let i = 0; i < numRows; i++) this.starts[i + 1] += this.starts[i];
      const next = this.starts.slice();
      this.byRow = new Int32Array(this.starts[numRows]);
      for (let node = 0; node < this.size; node++) {
        if (this.row[node] !== NONE) this.byRow[next[this.row[node]]++] = node;
      }
    }
    if (row + 1 >= this.starts.length) return [];
    const found = Array.from(this.byRow.subarray(this.starts[row], this.starts[row + 1]));
    return found.sort((a, b) => this.reach[b] - this.reach[a] || a - b);
  }
}

// Infosets and their actions, `InfosetTable` of page_content.py.
class Infosets {
  constructor(arrays, infostates, labels) {
    Object.assign(this, arrays);
    this.infostates = infostates;
    this.labels = labels;
    this.size = infostates.length;
    this.start = starts(this.num_actions);
  }

  // Actions of an infoset: name, probability, value, counterfactual regret, and whether a best response takes it.
  actions(row) {
    return Array.from({length: this.num_actions[row]}, (_, i) => {
      const at = this.start[row] + i;
      const value = this.action_value[at];
      return {
        move: this.move[at], probability: this.probability[at], value, best: this.is_best[at] > 0,
        regret: this.counterfactual_reach[row] * (value - this.value[row]),
      };
    });
  }

  // The gain by a best response from an infoset on, times the counterfactual reach.
  gain(row) {
    return this.counterfactual_reach[row] * (this.best_value[row] - this.value[row]) || 0;
  }
}

// Public states with the ranges of both players, `PublicState` of page_content.py.
class PublicStates {
  constructor(arrays, boards) {
    Object.assign(this, arrays);
    this.boards = boards;
    this.size = boards.length;
    const hands = new Int32Array(2 * this.size), moves = new Int32Array(this.size);
    for (let i = 0; i < this.size; i++) {
      hands[2 * i] = this.counts[3 * i];
      hands[2 * i + 1] = this.counts[3 * i + 1];
      moves[i] = this.counts[3 * i + 2];
    }
    this.handStart = starts(hands);
    this.moveStart = starts(moves);
    this.paid = new Int32Array(2 * this.size);
  }

  // Reads from the tree the player to move and the chips in the pot at each state.
  readTree(tree) {
    const movers = new Int8Array(this.size), probabilities = new Int32Array(this.size);
    for (let node = 0; node < tree.size; node++) {
      const row = tree.row[node];
      if (row === NONE) continue;
      movers[row] = tree.mover[node];
      if (tree.counted) this.paid.set(tree.spent.subarray(2 * node, 2 * node + 2), 2 * row);
    }
    for (let i = 0; i < this.size; i++) {
      const mover = movers[i];
      if (mover >= 0) probabilities[i] = this.counts[3 * i + 2] * this.counts[3 * i + mover];
    }
    this.probabilityStart = starts(probabilities);
  }

  movesOf(row) {
    return this.moves.subarray(this.moveStart[row], this.moveStart[row + 1]);
  }

  // A player's hands at a public state, with the strategy if it is to move.
  range(row, player, mover) {
    const from = this.handStart[2 * row + player], to = this.handStart[2 * row + player + 1];
    const count = to - from, actions = this.movesOf(row).length, paid = this.paid[2 * row + player];
    return Array.from({length: count}, (_, i) => {
      const hand = {
        hand: this.hands[from + i], weight: this.weight[from + i],
        // The reach probability of the hand, up to a factor common to the range.
        mass: this.weight[from + i] * this.opponent_weight[from + i],
        value: this.value[from + i] + paid, equity: this.equity[from + i] / 65535, actions: [],
      };
      for (let action = 0; player === mover && action < actions; action++) {
        const at = this.probabilityStart[row] + action * count + i;
        hand.actions.push({
          probability: this.probability[at] / 65535, value: this.action_value[at] + paid,
          best: this.is_best[at] > 0,
        });
      }
      return hand;
    });
  }
}

// Returns the start of each part of an array, given the lengths of the parts; then the length of the array.
function starts(counts) {
  const result = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) result[i + 1] = result[i] + counts[i];
  return result;
}

// Returns the indices of non-negative weights, largest weight first; equal weights in ascending order of indices.
function largestFirst(size, weight) {
  // Non-negative floats have the order of their bits. With the index in the low bits, a plain sort of numbers suffices,
  // which is ten times as fast as a sort with a function. A number has 53 bits; 31 are for the weight, 21 for the index.
  const places = 2 ** 21, bits = new Uint32Array(size), keys = new Float64Array(size);
  const floats = new Float32Array(bits.buffer);
  for (let i = 0; i < size; i++) floats[i] = Math.max(0, weight(i) || 0);
  for (let i = 0; i < size; i++) keys[i] = bits[i] * places + (places - 1 - (i % places));
  if (size > places) return Uint32Array.from(floats.keys()).sort((a, b) => floats[b] - floats[a] || a - b);
  keys.sort();
  const result = new Uint32Array(size);
  for (let i = 0; i < size; i++) result[size - 1 - i] = places - 1 - (keys[i] % places);
  return result;
}

// Numbers as text.

function percent(share) {
  if (!Number.isFinite(share)) return "–";
  if (share === 0) return "0%";
  if (share < 0.0001) return "<0.01%";
  const digits = share < 0.001 || (share > 0.999 && share < 1) ? 2 : 1;
  if (share < 1 && Number((100 * share).toFixed(digits)) === 100) return ">99.99%";
  return (100 * share).toFixed(digits).replace(/\.0$/, "") + "%";
}

// A percentage that shows numbers below 0.01% as well.
function exactly(share) {
  return share > 0 && share < 0.0001 ? (100 * share).toExponential(1).replace("-", "−") + "%" : percent(share);
}

function number(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) < 1e-12) return "0";
  const text = Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6
    ? value.toExponential(2)
    : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

function signed(value) {
  const text = number(value);
  return value > 0 && text !== "0" ? "+" + text : text;
}

function count(value) {
  return value.toLocaleString("en");
}
