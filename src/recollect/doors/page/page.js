// Asks the daemon that served this page. Memories are strangers' words: they are set as text, never as markup.
"use strict";

const at = (id) => document.getElementById(id);
let token = sessionStorage.getItem("recollect-token") || "";
let cursor = null;

function made(kind, name, text) {
  const one = document.createElement(kind);
  if (name) one.className = name;
  if (text !== undefined) one.textContent = text;
  return one;
}

function counted(number, one, many) {
  return `${number || "no"} ${number === 1 ? one : many}`;
}

function say(text) {
  at("told").textContent = text;
}

async function asked(path, document_) {
  const answer = await fetch(path, {
    method: document_ ? "POST" : "GET",
    headers: { Authorization: `Bearer ${token}`, ...(document_ && { "Content-Type": "application/json" }) },
    body: document_ && JSON.stringify(document_),
  });
  const said = await answer.json();
  if (answer.ok) return said;
  if (answer.status === 401) leave();
  throw new Error([said.detail, said.hint].filter(Boolean).join(" — "));
}

async function trying(work) {
  try {
    await work();
  } catch (error) {
    say(error instanceof TypeError ? "The daemon does not answer: is `recollect serve` running?" : error.message);
  }
}

function facts(memory, extra) {
  const tags = memory.tags.map((tag) => `#${tag}`);
  const place = [memory.scope.project, memory.scope.session].filter(Boolean);
  const said = [memory.type, ...tags, ...place, memory.created_at.slice(0, 10), `confidence ${memory.confidence}`,
    `importance ${memory.importance}`, memory.pinned ? "pinned" : "", memory.source, memory.id];
  return made("p", "facts", [...extra, ...said.filter(Boolean)].join(" · "));
}

function entry(memory, extra, parts) {
  const item = made("li");
  item.append(made("p", "text", memory.content), facts(memory, extra), ...parts);
  return item;
}

function contribution(one, most) {
  const row = made("div", "list");
  const bar = made("meter");
  bar.max = most || 1;
  bar.value = Math.max(one.value, 0);
  bar.title = `${one.list}: ${one.value}`;
  const why = `${one.value.toFixed(5)} · rank ${one.rank} · raw ${one.raw.toPrecision(4)} · weight ${+one.weight.toFixed(4)}`;
  row.append(made("span", "", one.list), bar, made("span", "", why));
  return row;
}

function adjustment(one) {
  return made("p", "facts", `${one.prior}: ${one.before.toFixed(5)} → ${one.after.toFixed(5)}`);
}

function showRecall(answer) {
  const most = Math.max(0, ...answer.hits.flatMap((hit) => hit.contributions.map((one) => one.value)));
  at("hits").replaceChildren(...answer.hits.map((hit) => entry(
    hit,
    [hit.score.toFixed(4), hit.redirected_from ? "for a superseded one" : ""].filter(Boolean),
    [...hit.contributions.map((one) => contribution(one, most)), ...hit.adjustments.map(adjustment)],
  )));
  at("rendered").textContent = answer.rendered || "(nothing)";
  at("missed").textContent = `Near misses (${answer.dropped.length})`;
  at("dropped").replaceChildren(...answer.dropped.map((one) =>
    made("li", "facts", `${one.score.toFixed(5)} · ${one.stage}: ${one.reason} · ${one.id}`)));
  at("trace").textContent = JSON.stringify(answer.trace, null, 2);
  at("more").hidden = false;
  at("older").hidden = true;
  const sure = answer.trace.confidence;
  const notes = answer.trace.notes.map((note) => ` · ${note}`).join("");
  const certainty = typeof sure === "number" ? ` · ${Math.round(sure * 100)} % sure` : "";
  say(`${counted(answer.hits.length, "memory", "memories")} · ${answer.profile} · ${answer.mode}${certainty}${notes}`);
}

async function showList(from) {
  const project = at("project").value.trim();
  const wanted = new URLSearchParams({ limit: "20", ...(project && { project }), ...(from && { cursor: from }) });
  const page = await asked(`/v1/memories?${wanted}`);
  const items = page.memories.map((memory) => entry(memory, [], []));
  if (from) at("hits").append(...items);
  else at("hits").replaceChildren(...items);
  cursor = page.next_cursor;
  at("older").hidden = !cursor;
  at("more").hidden = true;
  say(at("hits").children.length ? "The newest memories" : "There are no memories yet: `recollect remember …`");
}

async function recall() {
  const query = at("query").value.trim();
  if (!query) return showList(null);
  const profile = at("profile").value.trim();
  const project = at("project").value.trim();
  const given = { query, rendered: true, ...(profile && { profile }), ...(project && { scope: { project } }) };
  return showRecall(await asked("/v1/recall", given));
}

async function enter() {
  const stats = await asked("/v1/stats");
  sessionStorage.setItem("recollect-token", token);
  at("enter").hidden = true;
  at("ask").hidden = false;
  const waiting = stats.embedding.pending ? ` · ${stats.embedding.pending} wait for their embedding` : "";
  const held = `${counted(stats.memories, "memory", "memories")} · ${counted(stats.links, "link", "links")}`;
  at("about").textContent = `${held} · ${stats.embedding.model || "no model: words alone"}${waiting}`;
  await showList(null);
  at("query").focus();
}

function leave() {
  sessionStorage.removeItem("recollect-token");
  at("enter").hidden = false;
  at("ask").hidden = true;
}

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  trying(enter);
});
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(recall);
});
at("older").addEventListener("click", () => trying(() => showList(cursor)));
if (token) trying(enter);
