import { seededRandom } from '../../helpers/seeded-random.ts';
import type { Article } from './elasticsearch-server.ts';

type Random = () => number;

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

const WORDS = [
  'a',
  'the',
  'river',
  "don't",
  'Danube',
  'VIENNA',
  'é',
  '北京',
  'w1',
  'w2',
  'w3',
  'w4',
  'w5',
  'w6',
  '1,000.5',
  'x',
];

function words(random: Random, most: number): string {
  const word = (): string => WORDS[Math.floor((WORDS.length + 1) ** random()) - 1]!;
  return Array.from({ length: Math.floor(random() * (most + 1)) }, word).join(' ');
}

/** The articles that the recorded replies are about: `test/fixtures/elasticsearch-replies.jsonl`. */
export function randomArticles(): Article[] {
  const random = seededRandom(20_261_122);
  return Array.from({ length: 400 }, (_, i) => ({
    id: `d${i}`,
    title: words(random, 6),
    text: `${words(random, 80)} ${pick(random, WORDS)}`,
  }));
}

/** A random query of those that Trawl answers. */
function randomQuery(random: Random, depth: number): object {
  const boost = random() < 0.75 ? {} : { boost: pick(random, [0, 0.5, 2, 3.7, 1e-3]) };
  const field = pick(random, ['title', 'text', 'text', 'unknown']);
  const query = random() < 0.9 ? words(random, 6) : '...';
  const minimum = pick(random, [undefined, undefined, undefined, 1, 2, '-1', '60%', '-30%', '2<50%', '1<-1 3<75%', 9]);
  const text = {
    query,
    ...pick(random, [{}, {}, { operator: 'and' }, { zero_terms_query: 'all' }]),
    ...(minimum === undefined ? {} : { minimum_should_match: minimum }),
    ...boost,
  };
  const some = (most: number): object[] =>
    Array.from({ length: Math.floor(random() * (most + 1)) }, () => randomQuery(random, depth - 1));
  const leaf = depth === 0 || random() < 0.4;
  if (leaf) {
    switch (Math.floor(random() * 10)) {
      case 0:
        return { term: { [field]: { value: pick(random, WORDS), ...boost } } };
      case 1:
        return { terms: { [field]: [pick(random, WORDS), pick(random, WORDS)], ...boost } };
      case 2:
        return { ids: { values: Array.from({ length: 3 }, () => `d${Math.floor(random() * 400)}`), ...boost } };
      case 3:
        return pick(random, [{ match_all: boost }, { match_none: {} }, { exists: { field: 'text', ...boost } }]);
      case 4:
      case 5:
      case 6: {
        const fields = pick(random, [
          ['title', 'text'],
          ['title^2', 'text'],
          ['t*'],
          ['title'],
          ['text', 'unknown'],
          ['unknown'],
        ]);
        const type = pick(random, [{}, { type: 'most_fields' }, { type: 'best_fields', tie_breaker: 0.3 }]);
        return { multi_match: { ...text, fields, ...type } };
      }
      default:
        return { match: { [field]: text } };
    }
  }
  switch (Math.floor(random() * 5)) {
    case 0:
      return {
        dis_max: {
          queries: [randomQuery(random, depth - 1), ...some(2)],
          tie_breaker: pick(random, [0, 0.3, 1]),
          ...boost,
        },
      };
    case 1:
      return { constant_score: { filter: randomQuery(random, depth - 1), ...boost } };
    default:
      return {
        bool: {
          must: some(2),
          should: some(3),
          ...(random() < 0.4 ? { filter: some(2) } : {}),
          ...(random() < 0.3 ? { must_not: some(1) } : {}),
          ...(random() < 0.3 ? { minimum_should_match: pick(random, [0, 1, 2, '-1', '50%']) } : {}),
          ...boost,
        },
      };
  }
}

/** A search whose reply is the same on any server with Elasticsearch's scores. */
export function randomBody(random: Random): object {
  return {
    query: randomQuery(random, 3),
    size: pick(random, [0, 1, 5, 10, 50, 500]),
    ...(random() < 0.2 ? { from: pick(random, [1, 3, 100]) } : {}),
    ...(random() < 0.3 ? { track_total_hits: pick(random, [true, false, 1, 50, 10_000]) } : {}),
    ...(random() < 0.2 ? { min_score: pick(random, [0, 0.3, 1, 2.5]) } : {}),
    _source: pick(random, [false, false, ['title'], { excludes: ['t*'] }]),
  };
}

export interface RecordedReply {
  readonly body: object;
  readonly reply: unknown;
}

/** What two servers must agree on: the whole reply but its time, or the status, the types and the place of an error. */
export function comparableReply(status: number, text: string): unknown {
  if (status === 200) return text.replace(/"took":\d+/, '"took":0');
  const { error } = JSON.parse(text) as {
    error: { type: string; line?: number; col?: number; root_cause: { type: string }[] };
  };
  return {
    status,
    type: error.type,
    line: error.line ?? null,
    col: error.col ?? null,
    root: error.root_cause[0]?.type,
  };
}
