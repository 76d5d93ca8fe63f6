/** The texts of passages that a record names by row, read from the index, and whether that index is still the recorded one. */
import { make } from './dom.js';
import { readyFacts } from './facts.js';
import { base, getJson, pathOf, postJson } from './server.js';

/** Adds the texts. The rows of another generation may be other passages, so each gets the generation that the index has `now`. */
export async function addTexts({ turns }) {
  const wanted = turns
    .flatMap(({ passages = [] }) => passages)
    .filter(({ text, row, asked }) => text === undefined && row !== undefined && !asked);
  const groups = new Map();
  for (const [index, passages] of Map.groupBy(wanted, ({ index }) => index ?? '')) {
    const prefix = index === '' || index === readyFacts()?.index ? base : pathOf(index);
    try {
      const { json } = await postJson('/v1/passages', { rows: passages.map(({ row }) => row) }, { prefix });
      for (const [i, passage] of passages.entries()) {
        addDocument(passage, json.passages[i]?.document);
        passage.now = json.index.generation;
        if (passage.group === undefined) continue;
        if (!groups.has(passage.group)) groups.set(passage.group, await generationOf(passage.group));
        passage.now = groups.get(passage.group);
      }
    } catch (error) {
      for (const passage of passages) passage.missing = `could not be read: ${error.message}`;
    }
  }
}

/** Warnings for passages whose texts come from an index of another generation, or of one that the server does not name. */
export function generationNotices(passages) {
  const read = passages.filter(({ asked, text, recorded }) => asked && text !== undefined && recorded !== undefined);
  const doubtful = read.filter(({ recorded, now }) => recorded !== now);
  const texts = doubtful.map(({ index, group, recorded, now }) => {
    const name = group ?? index ?? 'The index';
    return now === undefined
      ? `The server does not say whether ${name} has changed since generation ${recorded}. The texts are what its rows have now; the agent may have been shown others.`
      : `${name} has changed since: it has generation ${now}, the record has ${recorded}. The texts are what its rows have now; the agent may have been shown others.`;
  });
  return [...new Set(texts)].map((text) => make('p', { class: 'notice' }, text));
}

function addDocument(passage, document) {
  passage.asked = true;
  if (document === undefined) passage.missing = 'not in the index';
  else if (passage.id !== undefined && document.id !== undefined && String(document.id) !== String(passage.id)) {
    passage.missing = 'the index has changed since: another passage is at this row';
  } else Object.assign(passage, { title: document.title, text: document.contents });
}

/** A group's record has the generation of the group, which the replies of its indexes lack. Undefined for a group without a name. */
async function generationOf(group) {
  try {
    return (await getJson('/readyz', { prefix: pathOf(group) })).generation;
  } catch {
    return undefined;
  }
}
