"use strict";
// The application: layout of the page, navigation and keys.

const KEYS = [
  ["↑ ↓", "choose a move"], ["→ or Enter", "make the chosen move"], ["← or Backspace", "take it back"],
  ["Home", "go to the beginning"], ["/", "search"], ["T", "light or dark"], ["?", "show these keys"],
];
const THEMES = ["auto", "light", "dark"];

function storedTheme() {
  // Some browsers have no storage for local files.
  try { return localStorage.getItem("spiel_cfr theme") || "auto"; } catch { return "auto"; }
}

function App({app}) {
  const {tree, infosets, header} = app;
  const inRange = (node) => (Number.isInteger(node) && node >= 0 && node < tree.size ? node : 0);
  const fromAddress = () => inRange(Number(location.hash.slice(1)));
  const [node, setNode] = useState(fromAddress);
  // The infoset chosen in the list if none of its histories is on the page.
  const [lone, setLone] = useState(NONE);
  const [chosen, setChosen] = useState(0);
  const [theme, setTheme] = useState(storedTheme);
  const [help, setHelp] = useState(false);
  const [finding, setFinding] = useState(false);
  const search = useRef(null);

  const go = useCallback((next) => {
    setLone(NONE);
    setChosen(0);
    setNode(next);
    setFinding(false);
    if (fromAddress() !== next) location.hash = String(next);
  }, []);
  const open = useCallback((row) => {
    const [first] = tree.nodesOf(row);
    if (first !== undefined) go(first);
    else { setLone(row); setFinding(false); }
  }, []);
  useEffect(() => {
    const follow = () => go(fromAddress());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  // Set before the children are rendered, which read colors.
  document.documentElement.dataset.theme = theme;
  useEffect(() => {
    try { localStorage.setItem("spiel_cfr theme", theme); } catch { /* kept for this visit only */ }
  }, [theme]);
  const turnTheme = () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  useEffect(() => {
    const keys = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select")) return;
      const moves = tree.num_children[node];
      const actions = {
        ArrowDown: () => moves && setChosen((chosen + 1) % moves),
        ArrowUp: () => moves && setChosen((chosen + moves - 1) % moves),
        ArrowRight: () => moves && go(tree.first_child[node] + chosen),
        ArrowLeft: () => node && go(tree.parent[node]),
        Backspace: () => node && go(tree.parent[node]),
        Home: () => go(0),
        "/": () => { setFinding(true); setTimeout(() => search.current && search.current.focus()); },
        t: turnTheme, T: turnTheme,
        "?": () => setHelp(!help),
        Escape: () => { setHelp(false); setFinding(false); },
      };
      if (event.key === "Enter" && !event.target.matches("button")) actions.ArrowRight();
      else if (actions[event.key]) actions[event.key]();
      else return;
      event.preventDefault();
      // The focused button must not get the next keys.
      if (event.key.startsWith("Arrow") && document.activeElement) document.activeElement.blur();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });

  const mover = tree.mover[node];
  const row = lone !== NONE ? lone : infosets && mover >= 0 ? tree.row[node] : NONE;
  const halved = header.exploitability !== null;
  return html`<div class="app ${finding ? "finding" : ""}">
    <header>
      <div class="names"><h1>${header.title}</h1><p class="quiet">${header.policy}<span class="wideonly"> · ${header.size}</span></p></div>
      <div class="buttons">
        <button id="find" class="narrowonly" aria-expanded=${finding} onClick=${() => setFinding(!finding)}>${infosets ? "Infosets" : "States"}</button>
        <button id="theme" title="Light, dark, or as the system (T)" onClick=${turnTheme}>${{auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark"}[theme]}</button>
        <button id="help" title="Keys (?)" aria-expanded=${help} onClick=${() => setHelp(!help)}>?</button>
      </div>
    </header>
    <aside>${infosets ? html`<${InfosetList} app=${app} selected=${row} open=${open} search=${search} />`
      : html`<${StateList} app=${app} selected=${node} open=${go} search=${search} />`}</aside>
    <main>
      <div class="tiles top">
        ${header.values.map((value, player) => html`<${Tile} key=${player} label=${html`<${Player} mover=${player} />`} note=${"best response " + signed(header.best_responses[player] + tree.value(0, player) - value)}>${signed(tree.value(0, player))}<//>`)}
        <${Tile} label=${halved ? "Exploitability" : "NashConv"} note=${halved ? "NashConv " + number(header.nash_conv) : "sum of all players' gains by best responses"}>${number(halved ? header.exploitability : header.nash_conv)}<//>
      </div>
      ${header.cut.length > 0 && html`<div class="cut" id="cut"><b>This page shows a part of the game.</b> Left out: ${header.cut.join("; ")}.</div>`}
      ${lone === NONE && html`<section class="card" id="node">
        <${Breadcrumb} app=${app} node=${node} go=${go} />
        <div class="where"><h2><${Player} mover=${mover} />${mover >= 0 ? " to move" : mover === CHANCE ? " moves" : ""}</h2>
          <div class="facts"><span class="which">${infosets ? "This history:" : "This public state:"}</span><span>reach <b>${exactly(tree.reach[node])}</b></span>
          ${header.values.map((_, player) => html`<span key=${player}>EV ${initials(player)} <b>${signed(tree.value(node, player))}</b></span>`)}
          ${header.poker && html`<${Stakes} app=${app} node=${node} />`}</div>
          <div class="buttons"><button id="back" disabled=${node === 0} onClick=${() => go(tree.parent[node])}>← Back</button><button id="home" disabled=${node === 0} onClick=${() => go(0)}>Start</button></div>
        </div>
        ${isRunout(app, node) && html`<${Runouts} app=${app} node=${node} go=${go} />`}
        <${Moves} key=${node} app=${app} node=${node} chosen=${chosen} go=${go} />
        ${!infosets && mover !== TERMINAL && tree.row[node] === NONE && html`<p class="cut" id="closed">This board is not on the page. To make a page with it: explore(..., runouts=[${JSON.stringify(runoutTo(app, node))}]).</p>`}
        ${infosets && mover >= 0 && row === NONE && html`<p class="cut">The page leaves out this infoset.</p>`}
      </section>`}
      ${row !== NONE && html`<${InfosetCard} key=${row} app=${app} row=${row} node=${node} go=${go} />`}
      ${app.states && html`<${PublicStateView} app=${app} node=${node} />`}
      ${header.traces.length > 0 && html`<${Curves} traces=${header.traces} theme=${theme} halved=${halved} />`}
      <footer class="quiet">${header.game} · made with spiel_cfr ${header.versions.spiel_cfr}</footer>
    </main>
    ${help && html`<div class="overlay" onClick=${() => setHelp(false)}><div class="card keys" role="dialog" aria-label="Keys"><h2>Keys</h2>
      <dl>${KEYS.map(([key, does]) => html`<dt key=${key}>${key}</dt><dd>${does}</dd>`)}</dl></div></div>`}
  </div>`;
}

async function start() {
  const root = document.getElementById("page");
  if (typeof DecompressionStream === "undefined") {
    root.textContent = "This page needs a browser of 2023 or later, with DecompressionStream.";
    return;
  }
  const names = ["header", "names", "tree", "infosets", "infostates", "labels", "states", "boards", "grid"];
  const [header, moves, arrays, table, infostates, labels, ranges, boards, grid] = await Promise.all(names.map(section));
  const tree = new Tree(arrays, header.players);
  const app = {header, names: moves, tree, infosets: table && new Infosets(table, infostates, labels), states: null, grid};
  if (ranges) {
    tree.counted = header.poker !== null;
    if (tree.counted) namePlayers(header.poker.players);
    app.states = new PublicStates(ranges, boards);
    app.states.readTree(tree);
  }
  root.textContent = "";
  render(html`<${App} app=${app} />`, root);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch((error) => {
  document.getElementById("page").textContent = "The data of this page can't be read: " + error;
  throw error;
});
