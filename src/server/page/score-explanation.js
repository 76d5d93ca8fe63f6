/** Why a hit has its score, from the explanation of POST /v1/search. */
import { make } from './dom.js';

const SIMILARITIES = {
  'inner-product': 'The dot product of the vectors of query and passage',
  cosine: 'The cosine of the angle between the vectors of query and passage',
  l2: 'The squared distance of the vectors of query and passage, negated',
};

export function scoreExplanation(hit, { mode, metric, result }) {
  const parts = [];
  if (hit.firstStage !== undefined) {
    const { rank, score } = hit.firstStage;
    parts.push(line('The reranker read query and passage together and gave ', number(hit.score), '.'));
    parts.push(line(`The search had the passage at rank ${rank} with `, number(score), '.'));
  }
  const score = hit.firstStage?.score ?? hit.score;
  if (mode === 'hybrid') parts.push(...fusionParts(hit, score, result.fusion));
  if (mode === 'dense') parts.push(...denseParts(score, metric, result.certificate));
  if (mode !== 'dense' && hit.terms !== undefined)
    parts.push(...termParts(hit.terms, mode === 'hybrid' ? hit.bm25?.score : score));
  return make('div', { class: 'explanation' }, ...parts);
}

function denseParts(score, metric, certificate) {
  const parts = [line(`${SIMILARITIES[metric] ?? 'The similarity of query and passage'}: `, number(score), '.')];
  if (certificate?.exact === true)
    parts.push(line('The answer is exact: no other passage scores higher than those listed.'));
  return parts;
}

function fusionParts(hit, score, fusion) {
  const rows = ['dense', 'bm25'].map((name) => {
    const place = hit[name];
    const label = name === 'dense' ? 'Dense' : 'BM25';
    const cells =
      place == null ? ['not in the list', '–', '0'] : [`${place.rank}`, digits(place.score), digits(place.part ?? 0)];
    return tableRow(label, cells);
  });
  const parts = [table(['list', 'rank', 'score', 'adds'], rows), line('The sum of both: ', number(score), '.')];
  if (fusion?.formula !== undefined) parts.push(make('p', { class: 'formula' }, fusion.formula));
  return parts;
}

/** The terms with bars as long as their parts of the score. */
function termParts(terms, total) {
  if (terms.length === 0) return [line('No word of the query is in the passage.')];
  const largest = Math.max(...terms.map(({ score }) => score));
  const hasFields = terms.some(({ field }) => field !== 'contents');
  const rows = terms.map(({ term, field, boost, documentFrequency, score }) => {
    const bar = make('span', { class: 'term-bar', 'aria-hidden': 'true' });
    bar.style.width = `${largest > 0 ? (100 * score) / largest : 0}%`;
    const word = `${term}${boost === 1 ? '' : ` × ${boost}`}${hasFields ? ` (${field})` : ''}`;
    const row = tableRow(word, [documentFrequency.toLocaleString('en'), score.toFixed(4)]);
    row.append(make('td', { class: 'bar-cell' }, bar));
    return row;
  });
  const sum = hasFields || total == null ? [] : [line('The sum of the words: ', number(total), '.')];
  return [table(['word', 'passages with it', 'adds'], rows), ...sum];
}

function table(heads, rows) {
  const cells = heads.map((text, i) => make('th', { scope: 'col', class: i === 0 ? null : 'figure' }, text));
  return make('table', {}, make('thead', {}, make('tr', {}, ...cells)), make('tbody', {}, ...rows));
}

function tableRow(head, figures) {
  const cells = figures.map((figure) => make('td', { class: 'figure' }, figure));
  return make('tr', {}, make('th', { scope: 'row' }, head), ...cells);
}

function line(...children) {
  return make('p', {}, ...children);
}

function number(value) {
  return make('strong', {}, digits(value));
}

function digits(value) {
  return typeof value === 'number' ? String(Number(value.toPrecision(6))) : '–';
}
