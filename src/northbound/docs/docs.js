
"use strict";
// The page reads /openapi.json and nothing else. Text from the contract is set
// as text, never as HTML.

const el = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== undefined && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
};
const byID = (id) => document.getElementById(id);
const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

let contract;

const resolve = (thing) => {
  while (thing && thing.$ref) {
    thing = thing.$ref.slice(2).split("/").reduce((at, key) => at[key.replace(/~1/g, "/").replace(/~0/g, "~")], contract);
  }
  return thing ?? {};
};

// inline and prose know as much of Markdown as the contract uses: `code`,
// **strong** and paragraphs.
const inline = (text) => (text ?? "").split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
  if (part.startsWith("`")) return el("code", {}, part.slice(1, -1));
  if (part.startsWith("**")) return el("strong", {}, part.slice(2, -2));
  return part;
});
const prose = (text) => (text ?? "").trim().split(/\n\s*\n/).filter(Boolean).map((paragraph) => el("p", {}, ...inline(paragraph)));

const typeOf = (ref) => {
  const schema = resolve(ref);
  const either = schema.anyOf ?? schema.oneOf;
  let name = schema.type ?? (either ? either.map(typeOf).join(" or ") : "any value");
  if (schema.type === "array") name = "array of " + typeOf(schema.items ?? {});
  if (schema.format) name += ` (${schema.format})`;
  if (schema.enum) name += ": " + schema.enum.join(" | ");
  return name + (schema.nullable ? " or null" : "");
};

const note = (schema) => [
  schema.description,
  schema["x-must"] && `Must ${schema["x-must"]}.`,
  schema.default !== undefined && `Default ${pretty(schema.default)}.`,
  schema.minimum !== undefined && schema.maximum !== undefined && `${schema.minimum} to ${schema.maximum}.`,
].filter(Boolean).join(" ");

const fields = (ref, depth = 0) => {
  let schema = resolve(ref);
  if (schema.type === "array") schema = resolve(schema.items);
  const either = schema.anyOf ?? schema.oneOf;
  if (either && !schema.properties) {
    const lists = either.map((one) => fields(one, depth)).filter(Boolean);
    return lists.length ? el("div", {}, ...lists) : null;
  }
  if (!schema.properties || depth > 4) return null;
  return el("ul", { class: "fields" }, ...Object.entries(schema.properties).map(([name, sub]) => {
    const needed = (schema.required ?? []).includes(name);
    return el("li", {}, el("code", {}, name), needed ? el("span", { class: "must" }, " required") : null,
      el("span", { class: "type" }, " " + typeOf(sub)), " ", ...inline(note(resolve(sub))), fields(sub, depth + 1));
  }));
};

const examplesOf = (media) => {
  if (media.example !== undefined) return [["Example", media.example]];
  return Object.entries(media.examples ?? {}).map(([name, ref]) => {
    const example = resolve(ref);
    return [example.summary ?? name, example.value];
  });
};

const parametersTable = (parameters) => parameters.length === 0 ? null : el("div", {}, el("h3", {}, "Parameters"),
  el("table", {}, el("thead", {}, el("tr", {}, ...["Name", "In", "Type", "Meaning"].map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...parameters.map((p) => el("tr", {},
      el("th", { scope: "row" }, el("code", {}, p.name), p.required ? el("span", { class: "must" }, " required") : null),
      el("td", {}, p.in), el("td", { class: "type" }, typeOf(p.schema)),
      el("td", {}, ...inline(note({ ...resolve(p.schema), description: p.description ?? resolve(p.schema).description }))))))));

const contentBlocks = (content) => Object.entries(content ?? {}).map(([media, m]) => el("div", {},
  el("p", { class: "soft" }, media, el("span", { class: "type" }, m.schema && !fields(m.schema) ? " " + typeOf(m.schema) : "")),
  fields(m.schema ?? {}),
  ...examplesOf(m).map(([name, value]) => el("div", {}, el("p", { class: "soft" }, name), el("pre", { tabindex: "0" }, pretty(value))))));

const responsesList = (responses) => el("div", {}, el("h3", {}, "Answers"),
  ...Object.entries(responses).map(([status, ref]) => {
    const r = resolve(ref);
    const headers = Object.keys(r.headers ?? {});
    return el("details", {}, el("summary", {}, el("span", { class: status < "4" ? "good" : "bad" }, status), el("span", { class: "what" }, ...inline(r.description))),
      el("div", { class: "inside" }, headers.length ? el("p", { class: "soft" }, "Headers: " + headers.join(", ")) : null, ...contentBlocks(r.content)));
  }));

// field is one row of a form: a label and its input.
let rows = 0;
const field = (label, input) => {
  input.id = `field-${++rows}`;
  return el("div", { class: "row" }, el("label", { for: input.id }, label), input);
};

const parameterInput = (p) => {
  const schema = resolve(p.schema);
  if (schema.enum || schema.type === "boolean") {
    return el("select", {}, ...["", ...(schema.enum ?? ["true", "false"])].map((v) => el("option", { value: v }, String(v))));
  }
  return el("input", { type: "text", autocomplete: "off", required: p.required, placeholder: p.example ?? "" });
};

// credentials are the inputs for the credentials of every request.
const credentials = {
  token: el("input", { type: "password", autocomplete: "off" }),
  user: el("input", { type: "text", autocomplete: "off" }),
  password: el("input", { type: "password", autocomplete: "off" }),
};
const authorization = () => {
  if (credentials.token.value !== "") return `Bearer ${credentials.token.value.trim()}`;
  if (credentials.user.value === "") return undefined;
  const bytes = new TextEncoder().encode(`${credentials.user.value}:${credentials.password.value}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
};

// quote quotes a text for a shell.
const quote = (text) => `'${text.replace(/'/g, "'\\''")}'`;

// curlLine returns the curl command of a request. It contains no secret: the
// shell reads the token from $TOKEN, and curl asks for a password.
const curlLine = ({ method, target, headers, body }) => {
  const words = ["curl"];
  if (method !== "GET") words.push("-X", method);
  if (credentials.token.value !== "") words.push("-H", '"Authorization: Bearer $TOKEN"');
  else if (credentials.user.value !== "") words.push("-u", quote(credentials.user.value));
  for (const [name, value] of headers) words.push("-H", quote(`${name}: ${value}`));
  if (body instanceof FormData) for (const [name, value] of body) words.push("-F", quote(`${name}=${value instanceof File ? `@${value.name}` : value}`));
  else if (body instanceof File) words.push("--data-binary", quote(`@${body.name}`));
  else if (body !== undefined) words.push("--data-binary", quote(body));
  return [...words, quote(location.origin + target)].join(" ");
};

// curlView shows the curl command of the request that a function returns.
const curlView = (request) => {
  const line = el("pre", { class: "curl", tabindex: "0", "aria-label": "curl command" });
  const copy = el("button", { type: "button", class: "quiet", on: { click: async () => {
    getSelection().selectAllChildren(line); // so that the keys copy it where the clipboard is not available
    await navigator.clipboard?.writeText(line.textContent);
  } } }, "Copy");
  const update = () => { line.textContent = curlLine(request()); };
  for (const input of Object.values(credentials)) input.addEventListener("input", update);
  return { node: el("div", {}, line), copy, update };
};

// bodyInput returns the inputs of one media type, and what they make a body of.
const bodyInput = (media, m) => {
  const schema = resolve(m.schema);
  if (media === "multipart/form-data") {
    const inputs = Object.entries(schema.properties).map(([name, sub]) => {
      const file = resolve(sub).format === "binary";
      return [name, el("input", { type: file ? "file" : "text", required: (schema.required ?? []).includes(name) })];
    });
    const make = () => {
      const form = new FormData();
      for (const [name, input] of inputs) {
        if (input.type === "file" && input.files[0]) form.append(name, input.files[0]);
        else if (input.type !== "file" && input.value !== "") form.append(name, input.value);
      }
      return form;
    };
    return { node: el("div", {}, ...inputs.map(([name, input]) => field(name, input))), make };
  }
  if (schema.format === "binary") {
    const input = el("input", { type: "file" });
    return { node: field("Body", input), make: () => input.files[0] };
  }
  const text = el("textarea", { spellcheck: "false" });
  const examples = examplesOf(m);
  text.value = examples.length ? pretty(examples[0][1]) : "{}";
  const pick = examples.length > 1 ? el("select", { on: { change: () => { text.value = pretty(examples[pick.value][1]); } } },
    ...examples.map(([name], i) => el("option", { value: i }, name))) : null;
  return { node: el("div", {}, pick ? field("Example", pick) : null, field("Body", text)), make: () => text.value };
};

const bodyForm = (content) => {
  const medias = Object.keys(content);
  const kinds = Object.fromEntries(medias.map((media) => [media, bodyInput(media, content[media])]));
  const select = el("select", {}, ...medias.map((media) => el("option", { value: media }, media)));
  const place = el("div", {});
  const show = () => place.replaceChildren(kinds[select.value].node);
  select.addEventListener("change", show);
  show();
  return { node: el("div", {}, field("Content-Type", select), place), media: () => select.value, make: () => kinds[select.value].make() };
};

const answerView = () => {
  const line = el("p", { role: "status" });
  const headers = el("pre", { tabindex: "0", "aria-label": "Headers" });
  const body = el("pre", { tabindex: "0", "aria-label": "Body" });
  return { node: el("div", { hidden: true }, el("h3", {}, "Answer"), line, headers, body), line, headers, body };
};

const readable = /json|text|yaml|event-stream/;

const showAnswer = async (view, started, response) => {
  view.line.replaceChildren(el("span", { class: response.ok ? "good" : "bad" }, `${response.status} ${response.statusText}`),
    ` after ${Math.round(performance.now() - started)} ms`);
  view.headers.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const media = response.headers.get("content-type") ?? "";
  if (media !== "" && !readable.test(media)) {
    const blob = await response.blob();
    view.body.replaceChildren(el("a", { href: URL.createObjectURL(blob), download: "content" }, `Save ${blob.size} bytes`));
    return;
  }
  view.body.textContent = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part; reader && !(part = await reader.read()).done;) view.body.append(part.value); // events as they come
  if (media.includes("json")) view.body.textContent = pretty(JSON.parse(view.body.textContent));
  if (view.body.textContent === "") view.body.textContent = "(no body)";
};

const tryForm = (method, path, parameters, body) => {
  const inputs = parameters.map((p) => [p, parameterInput(p)]);
  const content = body ? bodyForm(body.content) : null;
  const view = answerView();
  // request is the request that the inputs describe.
  const request = () => {
    let url = path;
    const query = new URLSearchParams(), headers = new Headers();
    for (const [p, input] of inputs) {
      if (input.value === "") continue;
      if (p.in === "path") url = url.replace(`{${p.name}}`, encodeURIComponent(input.value));
      else if (p.in === "query" && resolve(p.schema).type === "array") input.value.split(/[\s,]+/).forEach((v) => query.append(p.name, v));
      else if (p.in === "query") query.append(p.name, input.value);
      else headers.set(p.name, input.value);
    }
    // The browser, or curl, writes the boundary of a form itself.
    if (content && content.media() !== "multipart/form-data") headers.set("Content-Type", content.media());
    return { method, target: query.size ? `${url}?${query}` : url, headers, body: content ? content.make() : undefined };
  };
  const curl = curlView(request);
  let abort;
  const stop = el("button", { type: "button", class: "quiet", hidden: true, on: { click: () => abort.abort() } }, "Stop");
  const send = async (event) => {
    event.preventDefault();
    const { target, headers, body } = request();
    if (authorization()) headers.set("Authorization", authorization());
    abort = new AbortController();
    stop.hidden = false;
    view.node.hidden = false;
    view.line.textContent = "Waiting…";
    view.headers.textContent = view.body.textContent = "";
    const started = performance.now();
    try {
      const response = await fetch(target, { method, headers, body, signal: abort.signal });
      await showAnswer(view, started, response);
    } catch (error) {
      view.line.replaceChildren(el("span", { class: "bad" }, String(error)));
    }
    stop.hidden = true;
  };
  const form = el("form", { on: { submit: send, input: curl.update, change: curl.update } }, el("h3", {}, "Try it"),
    ...inputs.map(([p, input]) => field(`${p.name}${p.required ? " (required)" : ""}`, input)),
    content ? content.node : null, curl.node, el("p", {}, el("button", { type: "submit" }, "Send"), curl.copy, stop), view.node);
  curl.update();
  return form;
};

const operationView = (op) => {
  const parameters = [...(op.item.parameters ?? []), ...(op.parameters ?? [])].map(resolve);
  const body = op.requestBody ? resolve(op.requestBody) : null;
  const node = el("details", { id: op.operationId }, el("summary", {},
    el("span", { class: `method ${op.method}` }, op.method.toUpperCase()), el("span", { class: "path" }, op.path), el("span", { class: "what" }, op.summary)));
  // Most are never opened, so they are made when they are.
  node.addEventListener("toggle", () => {
    if (!node.open || node.children.length > 1) return;
    node.append(el("div", { class: "inside" }, ...prose(op.description), parametersTable(parameters),
      body ? el("div", {}, el("h3", {}, "Body"), ...contentBlocks(body.content)) : null,
      responsesList(op.responses), tryForm(op.method.toUpperCase(), op.path, parameters, body)));
  });
  return node;
};

// problemsView describes the kinds of problem, which is where the type of a
// problem points to.
const problemsView = () => {
  const kinds = contract.components.schemas.ProblemKind;
  const section = byID("problems");
  section.append(el("h2", {}, "Problems"), el("table", {}, el("tbody", {}, ...kinds.enum.map((kind) =>
    el("tr", { id: `problem-${kind}` }, el("th", { scope: "row" }, el("code", {}, kind)), el("td", {}, kinds["x-meanings"][kind]))))));
  section.hidden = false;
};

const reveal = () => {
  const target = byID(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
  target?.scrollIntoView();
};

const start = async () => {
  contract = await (await fetch("/openapi.json")).json();
  byID("version").textContent = `API ${contract.info.version}`;
  document.title = byID("version").parentElement.parentElement.textContent;
  byID("credentials").append(...Object.entries(credentials).map(([name, input]) => field(name[0].toUpperCase() + name.slice(1), input)));
  byID("intro").append(...prose(contract.info.description));
  const operations = Object.entries(contract.paths).flatMap(([path, item]) =>
    ["get", "post", "put", "patch", "delete"].filter((m) => item[m]).map((method) => ({ ...item[method], item, path, method })));
  const place = byID("operations"), index = byID("index");
  place.replaceChildren();
  const entries = [], groups = [];
  for (const tag of contract.tags) {
    const list = el("ul", {}), heading = el("h2", {}, tag.name);
    const section = el("section", {}, el("h2", {}, tag.name), ...prose(tag.description));
    place.append(section);
    for (const op of operations.filter((o) => o.tags[0] === tag.name)) {
      const view = operationView(op);
      const link = el("li", {}, el("a", { href: `#${op.operationId}` }, el("span", { class: `method ${op.method}` }, op.method.toUpperCase()), op.path));
      section.append(view);
      list.append(link);
      entries.push({ view, link, text: `${op.method} ${op.path} ${op.summary} ${op.operationId}`.toLowerCase() });
    }
    index.append(heading, list);
    groups.push({ list, parts: [heading, list, section] });
  }
  problemsView();
  byID("filter").addEventListener("input", ({ target }) => {
    const words = target.value.toLowerCase().split(/\s+/);
    for (const { view, link, text } of entries) view.hidden = link.hidden = !words.every((word) => text.includes(word));
    for (const { list, parts } of groups) {
      const empty = [...list.children].every((link) => link.hidden);
      for (const part of parts) part.hidden = empty;
    }
  });
  addEventListener("hashchange", reveal);
  reveal();
};

start().catch((error) => {
  byID("operations").replaceChildren(el("p", { class: "bad", role: "alert" }, `The contract cannot be read: ${error}`));
});
