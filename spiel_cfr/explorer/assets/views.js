"use strict";
// Components of the page. Names from a game stay text: htm and Preact do not read them as markup.

const {html, render, useState, useEffect, useMemo, useRef, useCallback} = htmPreact;

const PALETTE = [
  "#4c7bd9", "#ef8a3c", "#35a67a", "#d9567b", "#8a63d2", "#c6a117", "#2aa3b8", "#a1663f",
  "#7d8797", "#6b9e2f",
];
// Colors of poker: folds are blue, calls green, bets redder with their size.
const POKER = [[/^fold/i, "#6b9fd8"], [/^(call|check)/i, "#5cb878"], [/^all-?in/i, "#c0282d"]];
const BETS = ["#f6b26b", "#ef7d3b", "#d94f2b", "#a8326e", "#7b3fa0"];

function colorsOf(moves, names) {
  let bets = 0;
  return Array.from(moves, (move) => {
    const poker = POKER.find(([pattern]) => pattern.test(names[move]));
    if (poker) return poker[1];
    if (/^(bet|raise)/i.test(names[move])) return BETS[Math.min(bets++, BETS.length - 1)];
    return PALETTE[move % PALETTE.length];
  });
}

// ["OOP", "IP"] in postflop hold'em; null in other games.
let playerNames = null;

function namePlayers(names) {
  playerNames = names;
}

function playerName(mover) {
  return mover === CHANCE ? "Chance" : mover === TERMINAL ? "End of the game" : playerNames ? playerNames[mover] : `Player ${mover}`;
}

function initials(player) {
  return playerNames ? playerNames[player] : `P${player}`;
}

// The names of one or several moves without the parts in brackets, such as "(the pot)".
function short(name) {
  return name.replace(/ \([^()]*\)/g, "");
}

function Player({mover}) {
  const kind = mover < 0 ? "chance" : "p" + (mover % 6);
  return html`<span class="player ${kind}"><i></i>${playerName(mover)}</span>`;
}

function Bar({parts, label}) {
  return html`<span class="bar" role="img" aria-label=${label || ""}>
    ${parts.map(({share, color}) => share > 0 && html`<i style=${{width: 100 * share + "%", background: color}} />`)}
  </span>`;
}

function Tile({label, children, note}) {
  return html`<div class="tile"><span>${label}</span><b>${children}</b>${note && html`<small>${note}</small>`}</div>`;
}

// A list of rows of equal height, of which only the visible ones are in the document.
function LongList({rows, height, row, selected, label}) {
  const box = useRef(null);
  const [view, setView] = useState({top: 0, height: 600});
  const look = useCallback(() => {
    if (box.current) setView({top: box.current.scrollTop, height: box.current.clientHeight});
  }, []);
  useEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const at = rows.indexOf(selected);
    if (at < 0 || !box.current) return;
    const top = at * height, list = box.current;
    if (top < list.scrollTop || top + height > list.scrollTop + list.clientHeight) {
      list.scrollTop = Math.max(0, top - list.clientHeight / 3);
    }
  }, [selected, rows]);
  const first = Math.max(0, Math.floor(view.top / height) - 4);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / height) + 4);
  return html`<div class="long" ref=${box} onScroll=${look} role="listbox" aria-label=${label} tabindex="-1">
    <div style=${{height: rows.length * height + "px", position: "relative"}}>
      ${Array.from(rows.slice(first, last), (item, i) => html`
        <div key=${item} class="slot" style=${{top: (first + i) * height + "px", height: height + "px"}}>${row(item)}</div>`)}
    </div>
  </div>`;
}

// The height of a list's rows: long labels take two lines.
function rowHeight(labels) {
  return labels.some((label) => label.length > 34) ? 64 : 50;
}

const SORTS = {
  reach: "likeliest first",
  order: "in the game's order",
  gain: "largest gain by a best response first",
};

// Searchable list of infosets.
function InfosetList({app, selected, open, search}) {
  const {infosets, names} = app;
  const [query, setQuery] = useState("");
  const [player, setPlayer] = useState(NONE);
  const [sort, setSort] = useState("reach");
  const [active, setActive] = useState(0);
  const order = useMemo(() => {
    if (sort === "order") return Uint32Array.from({length: infosets.size}, (_, i) => i);
    return largestFirst(infosets.size, sort === "gain" ? (row) => infosets.gain(row) : (row) => infosets.reach[row]);
  }, [sort]);
  const labels = useMemo(() => infosets.labels.map(short), []);
  const height = useMemo(() => rowHeight(labels), []);
  const lower = useMemo(() => query && labels.map((label, row) => `${label}\n${infosets.infostates[row]}`.toLowerCase()), [!query]);
  const rows = useMemo(() => {
    const wanted = query.toLowerCase();
    return order.filter((row) => (player === NONE || infosets.player[row] === player)
      && (!wanted || lower[row].includes(wanted)));
  }, [order, query, player]);
  const keys = (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) setActive(Math.max(0, Math.min(rows.length - 1, active + step)));
    else if (event.key === "Enter" && rows.length) open(rows[Math.min(active, rows.length - 1)]);
    else if (event.key === "Escape") { setQuery(""); event.target.blur(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const row = (infoset) => {
    const actions = infosets.actions(infoset), colors = colorsOf(actions.map((a) => a.move), names);
    return html`<button class="item ${infoset === selected ? "on" : ""} ${query && rows[active] === infoset ? "active" : ""}" role="option"
        aria-selected=${infoset === selected} onClick=${() => open(infoset)} title=${infosets.infostates[infoset]}>
      <span class="line"><span class="dot p${infosets.player[infoset] % 6}"></span>
        <span class="words">${labels[infoset] || "The beginning"}</span><small>${percent(infosets.reach[infoset])}</small></span>
      <${Bar} parts=${actions.map((a, i) => ({share: a.probability, color: colors[i]}))} />
    </button>`;
  };
  return html`<div class="finder">
    <input id="search" ref=${search} type="search" placeholder="Search infosets  ( / )" value=${query} aria-label="Search infosets"
      onInput=${(event) => { setQuery(event.target.value); setActive(0); }} onKeyDown=${keys} />
    <div class="filters">
      <div class="segments" role="group" aria-label="Player">
        ${[NONE, ...Array(app.header.players).keys()].map((owner) => html`
          <button key=${owner} class=${owner === player ? "on" : ""} aria-pressed=${owner === player} data-player=${owner}
            onClick=${() => { setPlayer(owner); setActive(0); }}>${owner === NONE ? "All" : "P" + owner}</button>`)}
      </div>
      <select aria-label="Order" value=${sort} onChange=${(event) => setSort(event.target.value)}>
        ${Object.entries(SORTS).map(([key, label]) => html`<option value=${key}>${label}</option>`)}
      </select>
    </div>
    <p class="quiet" id="found">${count(rows.length)} of ${count(infosets.size)} infosets</p>
    <p class="quiet">Dot: the player. Bar: the strategy, one color for each action. Number: reach probability.</p>
    <${LongList} rows=${rows} height=${height} row=${row} selected=${selected} label="Infosets" />
  </div>`;
}

// Searchable list of the public states of a game in vector form.
function StateList({app, selected, open, search}) {
  const {tree, states, names} = app;
  const [query, setQuery] = useState("");
  const all = useMemo(() => {
    const decisions = [];
    for (let node = 0; node < tree.size; node++) if (tree.row[node] !== NONE && tree.mover[node] >= 0) decisions.push(node);
    return decisions.sort((a, b) => tree.reach[b] - tree.reach[a] || a - b);
  }, []);
  const label = (node) => tree.path(node).slice(1).map((step) => short(names[tree.move[step]])).join(" · ") || "The beginning";
  const labels = useMemo(() => new Map(all.map((node) => [node, label(node)])), []);
  const height = useMemo(() => rowHeight(Array.from(labels.values())), []);
  const rows = useMemo(() => all.filter((node) => labels.get(node).toLowerCase().includes(query.toLowerCase())), [query]);
  const keys = (event) => {
    if (event.key === "Enter" && rows.length) open(rows[0]);
    else if (event.key === "Escape") { setQuery(""); event.target.blur(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const row = (node) => html`<button class="item ${node === selected ? "on" : ""}" role="option" aria-selected=${node === selected}
      onClick=${() => open(node)} title=${labels.get(node)}>
    <span class="line"><span class="dot p${tree.mover[node]}"></span><span class="words">${labels.get(node)}</span>
      <small>${percent(tree.reach[node])}</small></span>
    <${Bar} parts=${[{share: tree.reach[node], color: "var(--accent)"}]} />
  </button>`;
  return html`<div class="finder">
    <input id="search" ref=${search} type="search" placeholder="Search public states  ( / )" value=${query} aria-label="Search public states"
      onInput=${(event) => setQuery(event.target.value)} onKeyDown=${keys} />
    <p class="quiet" id="found">${count(rows.length)} of ${count(all.length)} public states with a decision</p>
    <p class="quiet">Dot: the player to move. Bar and number: reach probability.</p>
    <${LongList} rows=${rows} height=${height} row=${row} selected=${selected} label="Public states" />
  </div>`;
}

function Breadcrumb({app, node, go}) {
  const {tree, names} = app;
  return html`<nav class="crumbs" aria-label="History">
    ${tree.path(node).map((step) => html`<button key=${step} data-node=${step} class=${step === node ? "on" : ""}
        aria-current=${step === node ? "step" : null} onClick=${() => go(step)}>
      ${step === 0 ? "Start" : html`<span class="dot ${tree.mover[tree.parent[step]] < 0 ? "chance" : "p" + (tree.mover[tree.parent[step]] % 6)}"></span>${short(names[tree.move[step]])}`}
    </button>`)}
  </nav>`;
}

// The moves at a node. At an infoset of which all actions are on the page, with values, regrets and a best response.
function Moves({app, node, chosen, go}) {
  const {tree, infosets, names, header} = app;
  const mover = tree.mover[node], children = tree.children(node);
  const row = infosets && mover >= 0 ? tree.row[node] : NONE;
  const actions = row === NONE ? null : infosets.actions(row);
  const colors = colorsOf(children.map((child) => tree.move[child]), names);
  const scale = actions ? Math.max(...actions.map((a) => Math.abs(a.regret)), 1e-300) : 1;
  const complete = actions && !tree.num_cut[node];
  const list = useRef(null);
  useEffect(() => {
    const on = list.current && list.current.querySelector("tr.chosen");
    if (on) on.scrollIntoView({block: "nearest"});
  }, [chosen]);
  if (mover === TERMINAL) {
    return html`<div class="tiles">${Array.from({length: header.players}, (_, player) => html`
      <${Tile} key=${player} label=${html`<${Player} mover=${player} />`}>${signed(tree.value(node, player))}<//>`)}</div>`;
  }
  return html`<div class="moves" ref=${list}><table>
    <thead><tr><th>${mover === CHANCE ? "Outcome" : "Action"}</th><th class="wide">Probability</th>
      ${complete ? html`<th title="The player's expected payoff at this infoset if it takes the action and then follows its policy">Infoset EV</th>
        <th title="Counterfactual regret: the counterfactual reach of the infoset times (infoset EV of the action - EV of the infoset)">Regret</th>
        <th title="Actions of a best response to the other players">Best</th>`
      : Array.from({length: header.players}, (_, player) => html`<th key=${player}>EV ${initials(player)}</th>`)}
    </tr></thead>
    <tbody>${children.map((child, i) => {
      const action = complete ? actions[i] : null;
      return html`<tr key=${child} class=${i === chosen ? "chosen" : ""} data-node=${child} onClick=${() => go(child)}>
        <td><button class="move" onClick=${(event) => { event.stopPropagation(); go(child); }}><i style=${{background: mover < 0 ? "var(--chance)" : colors[i]}}></i>${names[tree.move[child]]}</button></td>
        <td class="wide"><span class="share"><${Bar} parts=${[{share: tree.probability[child], color: mover < 0 ? "var(--chance)" : colors[i]}]} /><b>${percent(tree.probability[child])}</b></span></td>
        ${action ? html`<td class="num">${signed(action.value)}</td>
          <td class="num"><span class="regret ${action.regret > 0 ? "up" : "down"}" style=${{"--size": Math.sqrt(Math.abs(action.regret) / scale) || 0}}>${signed(action.regret)}</span></td>
          <td class="best">${action.best ? "★" : ""}</td>`
        : Array.from({length: header.players}, (_, player) => html`<td key=${player} class="num">${signed(tree.value(child, player))}</td>`)}
      </tr>`;
    })}</tbody></table>
    ${complete && html`<p class="legend quiet"><span>★ action of a best response to the other players</span><span><em class="regret up">regret above 0</em>
      <em class="regret down">below 0</em> stronger color: larger regret</span></p>`}
    ${tree.num_cut[node] > 0 && html`<p class="cut">${count(tree.num_cut[node])} ${tree.num_cut[node] === 1 ? "move" : "moves"} left out here.</p>`}
  </div>`;
}

// Pot, and the price of a call; without a bet to call, the SPR.
function Stakes({app: {tree, header}, node}) {
  const spent = [0, 1].map((player) => tree.spent[2 * node + player]);
  const pot = spent[0] + spent[1], mover = tree.mover[node];
  const behind = Math.min(...spent.map((chips, player) => header.poker.stacks[player] - chips));
  const call = mover >= 0 ? Math.max(...spent) - spent[mover] : 0;
  return html`<span>Pot <b id="pot">${number(pot)}</b></span>
    ${call > 0 ? html`<span>To call <b>${number(call)}</b></span><span title="Chips to call over the pot after the call: the equity that a call needs">Pot odds <b id="odds">${percent(call / (pot + call))}</b></span>`
    : html`<span title="Stack-to-pot ratio: the smaller stack behind over the pot">SPR <b id="spr">${number(behind / pot, 3)}</b></span>`}`;
}

const CARD = /^([2-9TJQKA])([cdhs])$/;

// The cards in the name of a move of chance: first the card on the page, then isomorphic cards in brackets.
function cardsDealt(name) {
  return name.replace(/[()]/g, "").split(/,? /);
}

function isRunout({tree, grid, names}, node) {
  return tree.mover[node] === CHANCE && grid && grid.unit === "hand"
    && tree.children(node).every((child) => cardsDealt(names[tree.move[child]]).every((card) => CARD.test(card)));
}

// The cards dealt on the way to a node, in the notation of explore's argument `runouts`.
function runoutTo({tree, names}, node) {
  return tree.path(node).filter((step) => step && tree.mover[tree.parent[step]] === CHANCE)
    .map((step) => short(names[tree.move[step]])).join("").replace(/ /g, "");
}

// A button for each card that chance may deal next, colored by the EV of the first player.
function Runouts({app, node, go}) {
  const {tree, names} = app;
  const children = tree.children(node), nodes = new Map();
  for (const child of children) for (const card of cardsDealt(names[tree.move[child]])) nodes.set(card, child);
  const values = children.map((child) => tree.value(child, 0)).filter(Number.isFinite);
  const low = Math.min(...values), high = Math.max(...values);
  const tint = (child) => 100 * (high > low ? (tree.value(child, 0) - low) / (high - low) : 0.5);
  const suits = "shdc".split("").filter((suit) => Array.from(nodes.keys()).some((card) => card[1] === suit));
  return html`<div class="runouts" role="group" aria-label="Runout">
    <p class="legend quiet"><span>Choose the next card. Color: EV of ${initials(0)}, from ${signed(low)} <i class="scale"></i> to ${signed(high)}</span>${children.some((child) => tree.row[child] === NONE) && html`<span>Pale: only the EV is on this page, not the board</span>`}</p>
    ${suits.map((suit) => html`<div class="suit" key=${suit}>${"AKQJT98765432".split("").map((rank) => {
      const card = rank + suit, child = nodes.get(card);
      return child === undefined ? html`<span key=${card} class="card-none"></span>`
        : html`<button key=${card} data-card=${card} class="${tree.row[child] === NONE ? "closed" : ""}" title=${`${names[tree.move[child]]}: EV ${initials(0)} ${signed(tree.value(child, 0))}, ${initials(1)} ${signed(tree.value(child, 1))}`}
            style=${{background: `color-mix(in oklab, var(--good) ${tint(child)}%, var(--bad))`}} onClick=${() => go(child)}>${rank}${SUITS[suit]}</button>`;
    })}</div>`)}
  </div>`;
}

// An infoset: what its player knows, reach and values, and its histories.
function InfosetCard({app, row, node, go}) {
  const {tree, infosets, names} = app;
  const nodes = useMemo(() => tree.nodesOf(row), [row]);
  const player = infosets.player[row];
  const beliefs = useMemo(() => {
    const weights = nodes.map((history) => tree.counterfactualReach(history, player));
    const total = infosets.counterfactual_reach[row];
    return nodes.map((history, i) => ({node: history, share: total > 0 ? weights[i] / total : NaN}))
      .sort((a, b) => (b.share || 0) - (a.share || 0)).slice(0, 60);
  }, [row]);
  return html`<section class="card infoset">
    <h2><${Player} mover=${player} /> knows: ${short(infosets.labels[row]) || "nothing yet"}</h2>
    <pre>${infosets.infostates[row] || "(nothing)"}</pre>
    <div class="tiles">
      <${Tile} label="Infoset reach" note="probability of all its histories">${exactly(infosets.reach[row])}<//>
      <${Tile} label="Counterfactual reach" note="reach if the player plays to reach the infoset">${exactly(infosets.counterfactual_reach[row])}<//>
      <${Tile} label="Infoset EV" note="the player's expected payoff at the infoset">${signed(infosets.value[row])}<//>
      <${Tile} label="Best response" note="the player's expected payoff by a best response">${signed(infosets.best_value[row])}<//>
    </div>
    <h3>Histories of this infoset <small>and the player's belief in each</small></h3>
    <ul class="beliefs">${beliefs.map((belief) => html`<li key=${belief.node}>
      <button data-node=${belief.node} class=${belief.node === node ? "on" : ""} onClick=${() => go(belief.node)}>
        <span class="share"><${Bar} parts=${[{share: belief.share || 0, color: "var(--accent)"}]} /><b>${percent(belief.share)}</b></span>
        <span class="words">${tree.path(belief.node).slice(1).map((step) => short(names[tree.move[step]])).join(" · ") || "the beginning"}</span>
      </button></li>`)}</ul>
    ${nodes.length > beliefs.length && html`<p class="quiet">and ${count(nodes.length - beliefs.length)} less likely histories.</p>`}
    ${nodes.length === 0 && html`<p class="cut">The page leaves out the histories of this infoset.</p>`}
  </section>`;
}

const COLORINGS = {strategy: "Strategy", equity: "Equity", value: "EV"};

const SCALE = (low, high) => html`<span>${low} <i class="scale"></i> ${high}</span>`;

// Grid of a player's hands or types at a public state; `chosen` is the row and column of the selected cell.
function RangeCard({app, node, row, player, mover, coloring, chosen, choose}) {
  const {tree, states, grid, names} = app;
  const hands = useMemo(() => states.range(row, player, mover), [row, player]);
  const moves = player === mover ? states.movesOf(row) : [];
  const colors = colorsOf(moves, names);
  const body = useRef(null);
  const cells = useMemo(() => {
    const found = new Map();
    for (const hand of hands) {
      const key = grid.row[hand.hand] * 64 + grid.column[hand.hand];
      if (!found.has(key)) found.set(key, {weight: 0, mass: 0, value: 0, equity: 0, actions: Array(moves.length).fill(0)});
      const cell = found.get(key);
      if (!(hand.mass > 0)) continue;
      cell.weight += hand.weight;
      cell.mass += hand.mass;
      cell.value += hand.mass * hand.value;
      cell.equity += hand.mass * hand.equity;
      hand.actions.forEach((action, i) => { cell.actions[i] += hand.mass * action.probability; });
    }
    const most = Math.max(...Array.from(found.values(), (cell) => cell.weight), 1e-300);
    const largest = Math.max(...hands.map((hand) => (hand.mass > 0 ? Math.abs(hand.value) || 0 : 0)), 1e-300);
    for (const cell of found.values()) {
      cell.height = cell.weight > 0 ? Math.max(0.12, Math.sqrt(cell.weight / most)) : 0;
      cell.scaled = cell.value / cell.mass / largest;
    }
    return found;
  }, [hands]);
  const totals = useMemo(() => {
    const total = {mass: 0, equity: 0, actions: Array(moves.length).fill(0)};
    for (const cell of cells.values()) {
      for (const key of ["mass", "equity"]) total[key] += cell[key];
      cell.actions.forEach((share, i) => { total.actions[i] += share; });
    }
    return total;
  }, [cells]);
  const paint = (cell) => {
    if (!cell || !(cell.weight > 0)) return "none";
    if (coloring === "equity") return solid(`color-mix(in oklab, var(--good) ${100 * cell.equity / cell.mass}%, var(--bad))`);
    if (coloring === "value") {
      const strength = Math.min(100, 15 + 85 * Math.abs(cell.scaled));
      return solid(`color-mix(in oklab, var(--${cell.scaled >= 0 ? "good" : "bad"}) ${strength}%, var(--sunken))`);
    }
    if (player !== mover) return solid(`var(--p${player})`);
    let at = 0;
    const stops = cell.actions.map((share, i) => {
      const from = at;
      at += 100 * share / cell.mass;
      return `${colors[i]} ${from}% ${at}%`;
    });
    return `linear-gradient(to right, ${stops.join(", ")})`;
  };
  const ofCards = grid.unit === "hand";
  const solid = (color) => `linear-gradient(${color}, ${color})`;
  const width = grid.labels[0].length;
  const move = (event, down, across) => {
    if (event.key === "Escape") choose(null);
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = body.current.querySelector(`[data-cell="${down + step[0]}-${across + step[1]}"]`);
    if (next) next.focus();
  };
  useEffect(() => {
    const on = chosen && body.current.querySelector(".cell.on");
    if (on) on.scrollIntoView({block: "nearest"});
  }, [chosen]);
  const summary = (cell, label) => (!cell || !(cell.weight > 0) ? label : [
    `${label}: EV ${signed(cell.value / cell.mass)}${ofCards ? `, equity ${percent(cell.equity / cell.mass)}` : ""}`,
    ...Array.from(moves, (name, i) => `${names[name]} ${percent(cell.actions[i] / cell.mass)}`),
  ].join("\n"));
  return html`<section class="card range" data-player=${player}>
    <h2><${Player} mover=${player} />${player === mover ? " to move" : ""}</h2>
    <div class="facts"><span>Range EV <b>${signed(tree.value(node, player))}</b></span>${ofCards && html`<span>Equity <b>${percent(totals.equity / totals.mass)}</b></span>`}
      <span><b>${count(hands.filter((hand) => hand.mass > 0).length)}</b> ${grid.unit}s</span></div>
    <div class="legend">${coloring === "strategy" && Array.from(moves, (name, i) => html`<span key=${i}><i style=${{background: colors[i]}}></i>${names[name]} <b>${percent(totals.actions[i] / totals.mass)}</b></span>`)}
      ${coloring === "equity" && SCALE("equity 0%", "100%")}${coloring === "value" && (tree.counted ? SCALE("EV 0", "the largest EV") : SCALE(`the ${grid.unit} loses`, "wins"))}
      ${coloring === "strategy" && !moves.length && html`<span><i style=${{background: `var(--p${player})`}}></i>does not move here</span>`}
      <span>Height of the fill: weight of the ${grid.unit}s in the range</span></div>
    <div class="grid ${width > 8 ? "" : "small"}" ref=${body} style=${{"--columns": width}} role="grid" aria-label=${(ofCards ? "Hands" : "Types") + " of " + playerName(player)}>
      ${grid.labels.flatMap((line, down) => line.map((label, across) => {
        const found = cells.get(down * 64 + across);
        return html`<button key=${down + "-" + across} data-cell=${down + "-" + across} role="gridcell" aria-label=${label}
          class="cell ${found && found.weight > 0 ? "" : "empty"} ${chosen && chosen[0] === down && chosen[1] === across ? "on" : ""}"
          style=${{backgroundImage: paint(found), backgroundSize: `100% ${found ? 100 * found.height : 0}%`}}
          title=${summary(found, label)} onFocus=${() => choose([down, across])} onClick=${() => choose([down, across])}
          onKeyDown=${(event) => move(event, down, across)}>${label}</button>`;
      }))}
    </div>
  </section>`;
}

// Table of the hands of the selected cell, below the ranges.
function Hands({app, row, player, mover, cell: [down, across], close}) {
  const {states, grid, names} = app;
  const hands = useMemo(
    () => states.range(row, player, mover).filter(({hand}) => grid.row[hand] === down && grid.column[hand] === across),
    [row, player, mover, down, across],
  );
  const moves = player === mover ? states.movesOf(row) : [];
  const colors = colorsOf(moves, names);
  const ofCards = grid.unit === "hand";
  const swatch = (i) => html`<i style=${{background: colors[i]}}></i>`;
  return html`<section class="card hands">
    <div class="where"><h2><${Player} mover=${player} /> ${grid.labels[down][across]}</h2>
      <div class="buttons"><button id="close" title="Esc" onClick=${close}>Close</button></div></div>
    <div class="scroll">${!hands.length ? html`<p class="quiet">${playerName(player)} can't have these ${grid.unit}s here.</p>` : html`
      <table><thead><tr><th>${ofCards ? "Hand" : "Type"}</th><th>Weight</th><th>EV</th>${ofCards && html`<th>Equity</th>`}
        ${Array.from(moves, (name, i) => html`<th key=${i}>${swatch(i)}${short(names[name])}</th>`)}</tr></thead>
      <tbody>${hands.map((hand) => html`<tr key=${hand.hand} class=${hand.mass > 0 ? "" : "never"}>
        <td class="hand">${ofCards ? cardsOf(grid.names[hand.hand]) : grid.names[hand.hand]}</td>
        <td class="num"><small>Weight</small>${percent(hand.weight)}</td><td class="num"><small>EV</small>${signed(hand.value)}</td>
        ${ofCards && html`<td class="num"><small>Equity</small>${Number.isFinite(hand.value) ? percent(hand.equity) : "–"}</td>`}
        ${hand.actions.map((action, i) => html`<td key=${i} class="num" title=${`${names[moves[i]]}: EV ${signed(action.value)}`}>
          <small>${swatch(i)}${short(names[moves[i]])}</small>${percent(action.probability)}<em>${signed(action.value)}${action.best ? " ★" : ""}</em></td>`)}
      </tr>`)}</tbody></table>
      ${moves.length > 0 && html`<p class="legend quiet"><span>For each action: probability and EV; ★ action of a best response</span></p>`}`}</div>
  </section>`;
}

const SUITS = {c: "♣", d: "♦", h: "♥", s: "♠"};

function cardsOf(text) {
  return Array.from(text.matchAll(/([0-9TJQKA])([cdhs]?)/g), ([, rank, suit], i) =>
    html`<span key=${i} class="playing suit-${suit}">${rank}${suit ? SUITS[suit] : ""}</span>`);
}

// The board and the ranges of both players at a public state.
function PublicStateView({app, node}) {
  const {tree, states, grid} = app;
  const ofCards = grid.unit === "hand";
  const row = tree.row[node];
  const [coloring, setColoring] = useState("strategy");
  // The player and the cell whose hands are shown; kept when the public state changes.
  const [chosen, setChosen] = useState(null);
  if (row === NONE) return null;
  return html`<div>
    <div class="board">${states.boards[row] ? html`<span class="quiet">Board</span> ${cardsOf(states.boards[row])}` : html`<span class="quiet">${ofCards ? "No public cards" : "Private types"}</span>`}
      <div class="segments" role="group" aria-label="Color by">${Object.entries(COLORINGS).filter(([key]) => ofCards || key !== "equity").map(([key, label]) => html`
        <button key=${key} data-coloring=${key} class=${key === coloring ? "on" : ""} aria-pressed=${key === coloring} onClick=${() => setColoring(key)}>${label}</button>`)}</div>
    </div>
    <div class="ranges">${[0, 1].map((player) => html`<${RangeCard} key=${row + "-" + player} app=${app} node=${node} row=${row} player=${player} mover=${tree.mover[node]} coloring=${coloring}
      chosen=${chosen && chosen.player === player ? chosen.cell : null} choose=${(cell) => setChosen(cell && {player, cell})} />`)}</div>
  </div>
  ${chosen && html`<${Hands} app=${app} row=${row} player=${chosen.player} mover=${tree.mover[node]} cell=${chosen.cell} close=${() => setChosen(null)} />`}`;
}

// Convergence curves on logarithmic axes.
function Curves({traces, theme, halved}) {
  const box = useRef(null);
  const [unit, setUnit] = useState("iterations");
  useEffect(() => {
    // A canvas can't use CSS variables.
    const color = (name) => {
      box.current.style.color = `var(${name})`;
      return getComputedStyle(box.current).color;
    };
    const positive = (value) => (value > 0 ? value : null);
    const xs = Array.from(new Set(traces.flatMap((trace) => trace[unit]))).filter((x) => x > 0).sort((a, b) => a - b);
    const lines = traces.map((trace) => {
      const found = new Map(trace[unit].map((x, i) => [x, positive(trace.nash_conv[i] / (halved ? 2 : 1))]));
      return xs.map((x) => found.get(x));
    });
    const isPower = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
    const powers = (_, splits) => splits.map((value) => (isPower(value) ? value : null));
    const raised = (power) => String(power).replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));
    const words = (_, splits) => splits.map((value) => (value === null ? "" : value >= 1 && value < 1e4 ? String(value) : "10" + raised(Math.round(Math.log10(value)))));
    const axis = {
      stroke: color("--quiet"), grid: {stroke: color("--line"), width: 1, filter: powers}, ticks: {show: false},
      filter: powers, values: words, font: "13px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif", labelSize: 24,
    };
    const size = () => ({width: Math.max(200, box.current.clientWidth), height: 300});
    const plot = new uPlot({
      ...size(), legend: {live: true},
      scales: {x: {time: false, distr: 3}, y: {distr: 3}},
      axes: [{...axis, label: unit, size: 34, labelSize: 22}, {...axis, size: 56}],
      series: [{label: unit}, ...traces.map((trace, i) => ({
        label: trace.name, stroke: PALETTE[i % PALETTE.length], width: 2, spanGaps: true, points: {show: trace[unit].length < 60, size: 5},
        value: (_, value) => (value == null ? "–" : value.toExponential(2)),
      }))],
    }, [xs, ...lines], box.current);
    const resize = () => plot.setSize(size());
    addEventListener("resize", resize);
    return () => { removeEventListener("resize", resize); plot.destroy(); };
  }, [unit, theme]);
  return html`<section class="card" id="curves">
    <h2>${halved ? "Exploitability" : "NashConv"} during the run <div class="segments" role="group" aria-label="Horizontal axis">
      ${["iterations", "seconds"].map((axisUnit) => html`<button key=${axisUnit} data-unit=${axisUnit} class=${axisUnit === unit ? "on" : ""} aria-pressed=${axisUnit === unit} onClick=${() => setUnit(axisUnit)}>${axisUnit}</button>`)}</div></h2>
    <div ref=${box}></div>
  </section>`;
}
