import type { Column } from '../../../src/engine/filter/column.ts';
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

/** The columns of the articles. `source` and `archived` have at most one value in an article. */
export const RANDOM_COLUMNS: readonly Column[] = [
  { name: 'title', type: 'string' },
  { name: 'source', type: 'string' },
  { name: 'tags', type: 'string' },
  { name: 'views', type: 'number' },
  { name: 'archived', type: 'boolean' },
  { name: 'date', type: 'date' },
];

/** The mapping of the articles in Elasticsearch. */
export const RANDOM_MAPPING = {
  title: { type: 'text', fields: { keyword: { type: 'keyword' } } },
  text: { type: 'text' },
  source: { type: 'keyword' },
  tags: { type: 'keyword' },
  views: { type: 'double' },
  archived: { type: 'boolean' },
  date: { type: 'date' },
};

const SOURCES = ['orf', 'apa', 'ORF', 'ärzte', '', '北京', '￿'];
const VIEWS = [-3.5, 0, 1, 2, 2.25, 1e7, 1e-4, 123456789];
const DATES = ['2019-12-31', '2020-01-31', '2020-01-31T12:30:00Z', '2020-02-29T23:59:59.999Z', '1969-07-20T20:17:40Z'];

/** The articles that the recorded replies are about: `test/fixtures/elasticsearch-replies.jsonl`. */
export function randomArticles(): Article[] {
  const random = seededRandom(20_261_122);
  const columns = seededRandom(12);
  return Array.from({ length: 400 }, (_, i) => {
    const some = <T>(values: readonly T[], most: number): T | T[] | undefined => {
      const found = Array.from({ length: Math.floor(columns() * (most + 1)) }, () => pick(columns, values));
      return found.length < 2 ? found[0] : found;
    };
    const title = words(random, 6);
    return {
      id: `d${i}`,
      ...(columns() < 0.1 ? {} : { title }),
      text: `${words(random, 80)} ${pick(random, WORDS)}`,
      source: some(SOURCES, 1),
      tags: some(SOURCES, 3),
      views: some(VIEWS, 2),
      archived: some([true, false], 1),
      date: some(DATES, 2),
    };
  });
}

/** A random query for a column whose score does not depend on the column's words. */
function columnQuery(random: Random): object {
  const bounds = (values: readonly unknown[]): object => {
    const of = (names: readonly string[]): object =>
      random() < 0.8 ? { [pick(random, names)]: pick(random, values) } : {};
    return { ...of(['gt', 'gte']), ...of(['lt', 'lte']) };
  };
  const dates = [...DATES, '2020', '2020-01', '2020-01-31', '2020-01-31||/M', '2020-02-29||-1M+1d/d', 'now-1000y/y'];
  const milliseconds = [1_580_473_800_000, 1_577_836_800_000, '1580473800000', 0];
  switch (Math.floor(random() * 8)) {
    case 0:
      return { terms: { [pick(random, ['source', 'tags'])]: [pick(random, SOURCES), pick(random, SOURCES)] } };
    case 1:
      return { term: { views: pick(random, VIEWS) } };
    case 2:
      return { term: { date: pick(random, random() < 0.3 ? milliseconds : ['2020-01-31', '2020', ...DATES]) } };
    case 3:
      return { range: { [pick(random, ['source', 'tags', 'title.keyword'])]: bounds(SOURCES) } };
    case 4:
      return { range: { views: bounds([...VIEWS, '1.5']) } };
    case 5:
      return { range: { date: bounds(random() < 0.3 ? milliseconds : dates) } };
    case 6:
      return {
        exists: { field: pick(random, ['title', 'text', 'source', 'tags', 'views', 'archived', 'date', 'unknown']) },
      };
    default:
      return {
        constant_score: {
          filter: { term: pick(random, [{ tags: 'orf' }, { archived: true }, { 'title.keyword': 'a' }]) },
        },
      };
  }
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
    minimum_should_match: minimum,
    ...boost,
  };
  const some = (most: number): object[] =>
    Array.from({ length: Math.floor(random() * (most + 1)) }, () => randomQuery(random, depth - 1));
  const leaf = depth === 0 || random() < 0.4;
  if (leaf) {
    switch (Math.floor(random() * 12)) {
      case 0:
        return { term: { [field]: { value: pick(random, WORDS), ...boost } } };
      case 1:
        return { terms: { [field]: [pick(random, WORDS), pick(random, WORDS)], ...boost } };
      case 2:
        return { ids: { values: Array.from({ length: 3 }, () => `d${Math.floor(random() * 400)}`), ...boost } };
      case 3:
        return pick(random, [{ match_all: boost }, { match_none: {} }, { exists: { field: 'text', ...boost } }]);
      case 10:
      case 11:
        return columnQuery(random);
      case 4:
      case 5:
      case 6: {
        const fields = pick(random, [
          ['title', 'text'],
          ['title^2', 'text'],
          ['te*'],
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

/** A random order, in which hits with equal values are ordered as they were indexed. */
function randomSort(random: Random): unknown {
  const field = (): unknown => {
    const name = pick(random, ['source', 'tags', 'views', 'archived', 'date', 'title.keyword', '_score', '_doc']);
    if (name.startsWith('_')) return pick(random, [name, { [name]: pick(random, ['asc', 'desc']) }]);
    const options = {
      order: pick(random, ['asc', 'desc']),
      ...pick(random, [{}, {}, { missing: '_first' }, { missing: '_last' }]),
      ...pick(random, [{}, {}, { mode: 'min' }, { mode: 'max' }]),
    };
    return pick<unknown>(random, [name, { [name]: 'desc' }, { [name]: options }]);
  };
  return Array.from({ length: 1 + Math.floor(random() * 2) }, field);
}

/** The words of a column are scored where no boost is around them. */
function scoredColumns(random: Random, query: object): object {
  const term = pick(random, [
    { term: { source: { value: pick(random, SOURCES), boost: pick(random, [1, 2, 0.3]) } } },
    { term: { archived: random() < 0.5 } },
    {
      match: {
        source: pick(
          random,
          SOURCES.filter((source) => source !== ''),
        ),
      },
    },
  ]);
  return { bool: { should: [term], must: [query] } };
}

/** A search whose reply is the same on any server with Elasticsearch's scores. */
export function randomBody(random: Random): object {
  const query = randomQuery(random, 3);
  return {
    query: random() < 0.15 ? scoredColumns(random, query) : query,
    ...(random() < 0.25 ? { sort: randomSort(random), track_scores: random() < 0.5 } : {}),
    ...(random() < 0.15
      ? { highlight: { number_of_fragments: 0, fields: { title: {}, text: { pre_tags: ['['], post_tags: [']'] } } } }
      : {}),
    ...(random() < 0.1 ? { fields: ['title', 'views', 'tags', 'archived', { field: 'date' }] } : {}),
    size: pick(random, [0, 1, 5, 10, 50, 500]),
    ...(random() < 0.2 ? { from: pick(random, [1, 3, 100]) } : {}),
    ...(random() < 0.3 ? { track_total_hits: pick(random, [true, false, 1, 50, 10_000]) } : {}),
    ...(random() < 0.2 ? { min_score: pick(random, [0, 0.3, 1, 2.5]) } : {}),
    _source: pick(random, [false, false, ['title'], { excludes: ['t*', 'source', 'views', 'archived', 'date'] }]),
  };
}

export interface RecordedReply {
  readonly body: object;
  readonly reply: unknown;
}

/** What two servers must agree on: the whole reply but its time, or the status, the types and the place of an error. */
export function comparableReply(status: number, text: string): unknown {
  if (status === 200) {
    const same = text.replace(/"took":\d+/, '"took":0');
    // The order of fields within these is not defined.
    return /"(?:fields|highlight)":\{/.test(same) ? (JSON.parse(same) as unknown) : same;
  }
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
