/** The facts of an index and its manifest as sentences. */
import { make } from './dom.js';
import { bytes } from './units.js';

/** Files of the corpus that are named. */
const NAMED_FILES = 3;
const POOLINGS = {
  mean: 'the mean of its tokens’ vectors',
  cls: 'the vector of its first token',
  last: 'the vector of its last token',
  pooler: 'the output of the model’s pooler',
  none: 'the output of the model',
};
const CHANGES = {
  update: 'It was updated after the build.',
  append: 'Passages were added after the build.',
  remove: 'Passages were removed after the build.',
};

const count = (value) => value.toLocaleString('en');
const numberOf = (value, name) => `${count(value)} ${name}${value === 1 ? '' : 's'}`;

/** `manifest` is the reply of GET /v1/manifest, or null. */
export function aboutIndex(details, manifest) {
  const { rows, deletedRows, dimension, metric, model, bm25, columns, views, modes, reranker, generation } = details;
  const live = rows - deletedRows;
  const sentences = [
    `The index has ${count(live)} passages${deletedRows > 0 ? `, and ${count(deletedRows)} deleted rows` : ''}.`,
  ];
  if (manifest !== null) sentences.push(...corpusSentences(manifest));
  if (model !== null) {
    const limit = model.maxTokens.passage;
    sentences.push(
      `${model.name} embedded each as a vector of ${dimension} values${limit === null ? '' : `, up to ${limit} tokens`}; vectors are compared by ${metricWords(metric)}.`,
    );
    if (manifest !== null && manifest.encoder !== null) sentences.push(encoderSentence(manifest.encoder));
    const { query, passage } = model.prefixes;
    if (query !== '' || passage !== '') sentences.push(`Queries begin with “${query}”, passages with “${passage}”.`);
    sentences.push(`A query is embedded as ${model.queryTemplate.split('-').join(' + ')}.`);
  }
  if (bm25 !== null) {
    sentences.push(
      `BM25 searches ${bm25.fields.join(' and ')} with the analyser ${bm25.analyser}, k1 ${bm25.k1} and b ${bm25.b}.`,
    );
  }
  sentences.push(
    `A search ranks by ${modes.length > 1 ? `${modes.slice(0, -1).join(', ')} or ${modes.at(-1)}, by ${modes[0]} if the request names no mode` : modes[0]}.`,
  );
  if (reranker !== null) sentences.push(`${reranker.name} can order the hits.`);
  if (columns.length > 0)
    sentences.push(`Filters can name ${columns.map(({ name, type }) => `${name} (${type})`).join(', ')}.`);
  if (views.length > 0) {
    sentences.push(
      `Its views are ${views.map(({ name, passages }) => `${name} (${count(passages)} passages)`).join(', ')}.`,
    );
  }
  const written = manifest === null ? '' : `, written by ${manifest.writer}`;
  return [make('p', {}, sentences.join(' ')), make('p', { class: 'help' }, `Generation ${generation}${written}`)];
}

function corpusSentences({ corpus, lastUpdate }) {
  const { files, fileCount, skippedLines, duplicateIds, truncatedPassages } = corpus;
  const sentences = [];
  if (fileCount > 0) {
    const named = files.slice(0, NAMED_FILES).map(({ name, bytes: size }) => `${name} (${bytes(size)})`);
    const rest = fileCount > named.length ? ` and ${numberOf(fileCount - named.length, 'more file')}` : '';
    sentences.push(`They come from ${named.join(', ')}${rest}.`);
  }
  const faults = [
    [skippedLines, 'skipped line'],
    [duplicateIds, 'repeated id'],
  ]
    .filter(([value]) => value > 0)
    .map(([value, name]) => numberOf(value, name));
  if (faults.length > 0) sentences.push(`The build counted ${faults.join(' and ')}.`);
  if (truncatedPassages > 0) sentences.push(`${numberOf(truncatedPassages, 'passage')} exceeded the token limit.`);
  if (CHANGES[lastUpdate] !== undefined) sentences.push(CHANGES[lastUpdate]);
  return sentences;
}

/** `pooling` is null if an endpoint embeds, which does not say it. */
function encoderSentence({ pooling, normalize, precision }) {
  const how = pooling === null ? 'as the endpoint makes it' : (POOLINGS[pooling] ?? pooling);
  const weights = precision === null ? '' : `; the weights are ${precision}`;
  return `The vector of a text is ${how}${normalize ? ', normalised to length 1' : ''}${weights}.`;
}

function metricWords(metric) {
  return (
    { 'inner-product': 'their dot product', cosine: 'the cosine of their angle', l2: 'their distance' }[metric] ??
    metric
  );
}
