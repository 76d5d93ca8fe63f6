import type { LoadLane } from './load-plan.ts';
import { distinctQueries, rolloutTrace, type SearchCall } from './search-calls.ts';

/** Loads of `trawl bench serve`; bench/README.md says what each stands for. */
export const SERVE_LOADS = [
  'lone',
  'batch',
  'verl',
  'verl-keep-alive',
  'skyrl',
  'rollouts',
  'lone-beside-batch',
  'overhead',
  'free-encoder',
  'free-encoder-batch',
  'generator',
] as const;
export type ServeLoad = (typeof SERVE_LOADS)[number];

/** How a load is made and read. */
export interface LoadKind {
  /** Of the timed lanes. */
  readonly clients: number;
  readonly topk: number;
  /** Whether the baseline is put under it too. */
  readonly compared: boolean;
  /** What the ratio to the baseline is of: above 1 is better. */
  readonly ratio: 'throughput' | 'latency';
  /** Answers depend on the query alone. */
  readonly checked: boolean;
  lanes(material: LoadMaterial): LoadLane[];
}

export interface LoadMaterial {
  readonly calls: readonly SearchCall[];
  /** Every repetition asks other queries, for as long as there are others. */
  readonly repetition: number;
  readonly seconds: number;
  readonly seed: number;
}

const BATCH_QUERIES = 512;
const VERL_CLIENTS = 120;
const SKYRL_CLIENTS = 2_560;
const ROLLOUTS = 5;
/** Their rollouts are as many clients as verl has, five times over. */
const ROLLOUT_QUESTIONS = 120;
const SATURATING_CLIENTS = 4;
const FREE_CLIENTS = 64;
const FREE_BATCH = 64;
/** A lone client thinks between its questions. */
const LONE_PAUSE_MS = 5;

const lane = (clients: number, sequences: LoadLane['sequences'], more: Partial<LoadLane> = {}): LoadLane => ({
  clients,
  sequences,
  keepAlive: true,
  seconds: null,
  pauseMs: 0,
  timed: true,
  ...more,
});

/** The queries from the place that this repetition begins at, from the start again where they end. */
function queriesFor({ calls, repetition, seed }: LoadMaterial, perRepetition: number): string[] {
  const all = distinctQueries(calls, seed);
  const start = (repetition * perRepetition) % all.length;
  return [...all.slice(start), ...all.slice(0, start)];
}

function batches(queries: readonly string[], size: number): string[][] {
  const whole: string[][] = [];
  for (let at = 0; at + size <= queries.length; at += size) whole.push(queries.slice(at, at + size));
  return whole;
}

/** One, two and three queries in turn. */
function smallRequests(queries: readonly string[]): string[][] {
  const requests: string[][] = [];
  for (let at = 0; at < queries.length; ) {
    const size = (requests.length % 3) + 1;
    requests.push(queries.slice(at, at + size));
    at += size;
  }
  return requests;
}

const each = <Value>(values: readonly Value[]): Value[][] => values.map((value) => [value]);

const verl = (keepAlive: boolean): LoadKind => ({
  clients: VERL_CLIENTS,
  topk: 3,
  compared: true,
  ratio: 'throughput',
  checked: true,
  lanes: (material) => {
    const requests = smallRequests(queriesFor(material, VERL_CLIENTS * 30));
    return [lane(VERL_CLIENTS, each(requests), { keepAlive, seconds: material.seconds })];
  },
});

const free = (clients: number, batch: number): LoadKind => ({
  clients,
  topk: 3,
  compared: false,
  ratio: 'throughput',
  checked: false,
  lanes: (material) => {
    const requests = batches(queriesFor(material, 0), batch);
    return [lane(clients, each(requests), { seconds: material.seconds })];
  },
});

export const LOAD_KINDS: Readonly<Record<ServeLoad, LoadKind>> = {
  lone: {
    clients: 1,
    topk: 3,
    compared: true,
    ratio: 'latency',
    checked: true,
    lanes: (material) => {
      const queries = each(queriesFor(material, 500));
      return [lane(1, each(queries), { seconds: material.seconds, pauseMs: LONE_PAUSE_MS })];
    },
  },
  batch: {
    clients: 1,
    topk: 3,
    compared: true,
    ratio: 'throughput',
    checked: true,
    lanes: (material) => [lane(1, [[queriesFor(material, BATCH_QUERIES).slice(0, BATCH_QUERIES)]])],
  },
  verl: verl(false),
  'verl-keep-alive': verl(true),
  skyrl: {
    clients: SKYRL_CLIENTS,
    topk: 3,
    compared: true,
    ratio: 'throughput',
    checked: true,
    lanes: (material) => {
      const queries = queriesFor(material, SKYRL_CLIENTS).slice(0, SKYRL_CLIENTS);
      return [lane(SKYRL_CLIENTS, each(each(queries)))];
    },
  },
  rollouts: {
    clients: VERL_CLIENTS,
    topk: 3,
    compared: true,
    ratio: 'throughput',
    checked: true,
    lanes: ({ calls, seed }) => [
      lane(VERL_CLIENTS, rolloutTrace(calls, { questions: ROLLOUT_QUESTIONS, rollouts: ROLLOUTS, seed })),
    ],
  },
  'lone-beside-batch': {
    clients: 1,
    topk: 3,
    compared: true,
    ratio: 'latency',
    checked: true,
    lanes: (material) => {
      const queries = queriesFor(material, BATCH_QUERIES);
      return [
        lane(1, each(each(queries.slice(-1000))), { seconds: material.seconds, pauseMs: LONE_PAUSE_MS }),
        lane(SATURATING_CLIENTS, each(batches(queries, BATCH_QUERIES)), { seconds: material.seconds, timed: false }),
      ];
    },
  },
  overhead: {
    clients: 1,
    topk: 10,
    compared: false,
    ratio: 'latency',
    checked: true,
    lanes: (material) => {
      const queries = each(queriesFor(material, 500));
      return [lane(1, each(queries), { seconds: material.seconds, pauseMs: LONE_PAUSE_MS })];
    },
  },
  'free-encoder': free(FREE_CLIENTS, 1),
  'free-encoder-batch': free(8, FREE_BATCH),
  generator: free(FREE_CLIENTS, 1),
};
