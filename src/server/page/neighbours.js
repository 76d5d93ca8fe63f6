/** The passages before and after a hit in its document. */
import { make, say } from './dom.js';
import { titleAndText } from './highlight.js';
import { base, messageOf, pathOf, postJson } from './server.js';

/** The buttons under a hit. Nothing is read before the first click. */
export function neighbourPart({ row, index }, list, similar) {
  const prefix = index === undefined ? (list.prefix ?? base) : pathOf(index);
  const shown = make('div', { class: 'neighbours' });
  const button = make('button', { type: 'button', class: 'link' }, 'Passages before and after');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      await showNeighbours(shown, row, prefix);
      button.remove();
    } catch (error) {
      button.disabled = false;
      shown.replaceChildren(make('p', { class: 'notice error' }, messageOf(error).text));
    }
  });
  const like = similar && make('button', { type: 'button', class: 'link', onclick: similar }, 'Passages like this');
  return make('div', {}, make('p', { class: 'foot-line' }, button, like), shown);
}

async function showNeighbours(shown, row, prefix) {
  // The texts are not needed yet, and a document may be long.
  const wanted = { rows: [row], wholeDocuments: true, cut: { words: 1 } };
  const { json } = await postJson('/v1/passages', wanted, { prefix });
  const rows = json.documents[0]?.rows ?? [row];
  const at = Math.max(0, rows.indexOf(row));
  if (rows.length < 2) {
    shown.replaceChildren(make('p', { class: 'help' }, 'This is the only passage of its document.'));
    say('This is the only passage of its document.');
    return;
  }
  const place = make('p', { class: 'help' }, `Passage ${at + 1} of ${rows.length} of its document`);
  const before = walker('Previous', -1, rows, at, prefix);
  const after = walker('Next', 1, rows, at, prefix);
  shown.replaceChildren(place, before.part, after.part);
  await Promise.all([before.more(), after.more()]);
}

/** A list of passages that grows by one with each click, away from the hit. */
function walker(label, step, rows, start, prefix) {
  let at = start;
  const list = make('ol', { class: 'around' });
  const button = make('button', { type: 'button', class: 'link' });
  const more = async () => {
    at += step;
    const row = rows[at];
    if (row !== undefined) {
      const { json } = await postJson('/v1/passages', { rows: [row] }, { prefix });
      const { title, contents = '' } = json.passages[0]?.document ?? {};
      const { text } = titleAndText({ title, text: contents });
      const entry = make(
        'li',
        {},
        make('span', { class: 'help' }, `${label}: passage ${at + 1}`),
        make('p', { class: 'text', dir: 'auto' }, text),
      );
      if (step < 0) list.prepend(entry);
      else list.append(entry);
    }
    button.textContent = `${label}: passage ${at + step + 1}`;
    button.hidden = rows[at + step] === undefined;
  };
  button.addEventListener('click', more);
  const parts = step < 0 ? [button, list] : [list, button];
  return { part: make('div', {}, ...parts), more };
}
