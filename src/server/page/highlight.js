/** Marks the words of a passage that the query has. */
import { make } from './dom.js';

const WORDS = /[\p{L}\p{N}]+/gu;

/** Words of English questions that say nothing about the passage. */
const STOP_WORDS = new Set(
  `a an and are as at be been but by did do does for from had has have he her him his how if in into is it its no not of on or
   she so such than that the their them then there these they this to was were what when where which who whom whose why will
   with you your`.split(/\s+/),
);

/**
 * Returns a function that tells whether a word matches the query. `terms` come from BM25's explanation; without them, the words of the
 * query count.
 * Terms are stems, so a word matches if it begins like a term and ends like an inflection. This is for reading, not for scores.
 */
export function wordMatcher(terms, query) {
  const stems =
    terms === undefined
      ? [...query.matchAll(WORDS)]
          .map(([word]) => word.toLowerCase())
          .filter((word) => !STOP_WORDS.has(word))
          .map(stem)
      : terms.map(({ term }) => term);
  const wanted = new Set(stems);
  return (word) => {
    const lower = word.toLowerCase();
    return wanted.has(lower) || wanted.has(stem(lower)) || stems.some((term) => isInflection(lower, term));
  };
}

function isInflection(word, term) {
  const begin = term.length > 3 && /[iey]$/.test(term) ? term.slice(0, -1) : term;
  if (begin.length < 3 || !word.startsWith(begin)) return false;
  return /^(?:|s|es|e|y|ys|yed|ying|ies|ied|ed|ing|er|ers|or|al|ly|ion|ions)$/.test(word.slice(begin.length));
}

function stem(word) {
  const bare = word.replace(/(?:ing|ies|es|ed|s)$/, '');
  return bare.length >= 3 ? bare : word;
}

/** The text as nodes, with `mark` elements. */
export function markWords(text, matches) {
  const nodes = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (!matches(word)) continue;
    if (index > end) nodes.push(text.slice(end, index));
    nodes.push(make('mark', {}, word));
    end = index + word.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

/** `text` begins with the title, which has double quotes there. */
export function titleAndText({ title = '', text }) {
  const newline = text.indexOf('\n');
  if (newline === -1) return { title, text };
  const first = text.slice(0, newline).replace(/^"(.*)"$/, '$1');
  return title === '' || first === title ? { title: first, text: text.slice(newline + 1) } : { title, text };
}
