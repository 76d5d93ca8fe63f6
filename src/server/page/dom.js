/** Small helpers for the document. Texts go in as text, never as HTML: passages come from anybody. */

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; children are nodes or texts, and `null` is left out. */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (attribute.startsWith('on')) made.addEventListener(attribute.slice(2), value);
    else made.setAttribute(attribute, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The entries of a `dl`: names with their values. */
export function definitions(values, attributes = {}) {
  return values.map(([name, value]) => make('div', attributes, make('dt', {}, name), make('dd', {}, value)));
}

/** Text for screen readers, which announce it. */
export function say(text) {
  byId('status').textContent = text;
}

/** Copies the text of `source`; selects it where the browser forbids copying (without https, or without permission). */
export async function copyText(button, source) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  try {
    await navigator.clipboard.writeText(typeof source === 'string' ? source : source.textContent);
    button.textContent = 'Copied';
  } catch {
    if (typeof source !== 'string') getSelection()?.selectAllChildren(source);
    button.textContent = typeof source === 'string' ? 'See the address bar' : 'Selected';
  }
  setTimeout(() => {
    button.textContent = label;
  }, 1500);
}

/** Buttons of which one is pressed. `choose` is called with the value of the button. */
export function fillChoice(group, values, chosen, choose) {
  const buttons = values.map(([value, label]) =>
    make('button', { type: 'button', 'aria-pressed': String(value === chosen) }, label),
  );
  buttons.forEach((button, i) => {
    button.addEventListener('click', () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      choose(values[i][0]);
    });
  });
  group.replaceChildren(...buttons);
}

const loading = new Map();

/** Loads a style sheet of the page, or a script that is not a module, once. */
export function load(name) {
  if (!loading.has(name)) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const events = { onload: resolve, onerror: () => reject(new Error(`${name} could not be loaded.`)) };
    const address = `/page/${name}`;
    document.head.append(
      name.endsWith('.css')
        ? make('link', { rel: 'stylesheet', href: address, ...events })
        : make('script', { src: address, ...events }),
    );
    loading.set(name, promise);
  }
  return loading.get(name);
}
