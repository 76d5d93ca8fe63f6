import type { ClientGroup } from './load-plan.ts';
import { distinctQueries, rolloutTrace, type SearchCall } from './search-calls.ts';

/** Clients that each send one query after the other. Only measured if named. */
export const STEADY_LOADS = ['clients-1', 'clients-8', 'clients-32', 'clients-128'] as const;

/** The loads of `trawl bench serve`, which bench/server.md describes. */
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
export type ServeLoad = (typeof SERVE_LOADS)[number] | (typeof STEADY_LOADS)[number];

/** How a load is generated and evaluated. */
export interface LoadDefinition {
  /** Clients in the timed groups. */
  readonly clients: number;
  readonly topk: number;
  /** Whether the baseline is measured too. */
  readonly hasBaseline: boolean;
  /** The figure of `ratioToBaseline`; above 1, Trawl is better. */
  readonly ratio: 'throughput' | 'latency';
  /** Whether answers are compared: they must depend on the query alone. */
  readonly checksAnswers: boolean;
  groups(inputs: LoadInputs): ClientGroup[];
}

interface LoadInputs {
  readonly calls: readonly SearchCall[];
  /** Number of the repetition, from 0. Each repetition sends different queries if there are enough. */
  readonly repetition: number;
  readonly seconds: number;
  readonly seed: number;
}

const BATCH_QUERIES = 512;
const VERL_CLIENTS = 120;
const SKYRL_CLIENTS = 2_560;
const ROLLOUTS = 5;
/** Equal to verl's number of clients. Each question has five rollouts. */
const ROLLOUT_QUESTIONS = 120;
const SATURATING_CLIENTS = 4;
const FREE_CLIENTS = 64;
const FREE_BATCH = 64;
/** Pause of a lone client between its requests. */
const LONE_PAUSE_MS = 5;

const group = (clients: number, sequences: ClientGroup['sequences'], more: Partial<ClientGroup> = {}): ClientGroup => ({
  clients,
  sequences,
  keepAlive: true,
  seconds: null,
  pauseMs: 0,
  timed: true,
  ...more,
});

/** All queries, rotated so that each repetition starts with different ones. */
function queriesFor({ calls, repetition, seed }: LoadInputs, perRepetition: number): string[] {
  const all = distinctQueries(calls, seed);
  const start = (repetition * perRepetition) % all.length;
  return [...all.slice(start), ...all.slice(0, start)];
}

function batches(queries: readonly string[], size: number): string[][] {
  const whole: string[][] = [];
  for (let at = 0; at + size <= queries.length; at += size) whole.push(queries.slice(at, at + size));
  return whole;
}

/** Requests of one, two, three, one, … queries. */
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

const verl = (keepAlive: boolean): LoadDefinition => ({
  clients: VERL_CLIENTS,
  topk: 3,
  hasBaseline: true,
  ratio: 'throughput',
  checksAnswers: true,
  groups: (inputs) => {
    const requests = smallRequests(queriesFor(inputs, VERL_CLIENTS * 30));
    return [group(VERL_CLIENTS, each(requests), { keepAlive, seconds: inputs.seconds })];
  },
});

const withoutEncoder = (clients: number, batch: number): LoadDefinition => ({
  clients,
  topk: 3,
  hasBaseline: false,
  ratio: 'throughput',
  checksAnswers: false,
  groups: (inputs) => {
    const requests = batches(queriesFor(inputs, 0), batch);
    return [group(clients, each(requests), { seconds: inputs.seconds })];
  },
});

/** Clients that each send one query after the other: throughput by their number. */
const steadyClients = (clients: number): LoadDefinition => ({
  clients,
  topk: 3,
  hasBaseline: true,
  ratio: 'throughput',
  checksAnswers: true,
  groups: (inputs) => [group(clients, each(each(queriesFor(inputs, clients * 30))), { seconds: inputs.seconds })],
});

export const LOADS: Readonly<Record<ServeLoad, LoadDefinition>> = {
  lone: {
    clients: 1,
    topk: 3,
    hasBaseline: true,
    ratio: 'latency',
    checksAnswers: true,
    groups: (inputs) => {
      const queries = each(queriesFor(inputs, 500));
      return [group(1, each(queries), { seconds: inputs.seconds, pauseMs: LONE_PAUSE_MS })];
    },
  },
  batch: {
    clients: 1,
    topk: 3,
    hasBaseline: true,
    ratio: 'throughput',
    checksAnswers: true,
    groups: (inputs) => [group(1, [[queriesFor(inputs, BATCH_QUERIES).slice(0, BATCH_QUERIES)]])],
  },
  verl: verl(false),
  'verl-keep-alive': verl(true),
  skyrl: {
    clients: SKYRL_CLIENTS,
    topk: 3,
    hasBaseline: true,
    ratio: 'throughput',
    checksAnswers: true,
    groups: (inputs) => {
      const queries = queriesFor(inputs, SKYRL_CLIENTS).slice(0, SKYRL_CLIENTS);
      return [group(SKYRL_CLIENTS, each(each(queries)))];
    },
  },
  rollouts: {
    clients: VERL_CLIENTS,
    topk: 3,
    hasBaseline: true,
    ratio: 'throughput',
    checksAnswers: true,
    groups: ({ calls, seed }) => [
      group(VERL_CLIENTS, rolloutTrace(calls, { questions: ROLLOUT_QUESTIONS, rollouts: ROLLOUTS, seed })),
    ],
  },
  'lone-beside-batch': {
    clients: 1,
    topk: 3,
    hasBaseline: true,
    ratio: 'latency',
    checksAnswers: true,
    groups: (inputs) => {
      const queries = queriesFor(inputs, BATCH_QUERIES);
      return [
        group(1, each(each(queries.slice(-1000))), { seconds: inputs.seconds, pauseMs: LONE_PAUSE_MS }),
        group(SATURATING_CLIENTS, each(batches(queries, BATCH_QUERIES)), { seconds: inputs.seconds, timed: false }),
      ];
    },
  },
  overhead: {
    clients: 1,
    topk: 10,
    hasBaseline: false,
    ratio: 'latency',
    checksAnswers: true,
    groups: (inputs) => {
      const queries = each(queriesFor(inputs, 500));
      return [group(1, each(queries), { seconds: inputs.seconds, pauseMs: LONE_PAUSE_MS })];
    },
  },
  'free-encoder': withoutEncoder(FREE_CLIENTS, 1),
  'free-encoder-batch': withoutEncoder(8, FREE_BATCH),
  generator: withoutEncoder(FREE_CLIENTS, 1),
  'clients-1': steadyClients(1),
  'clients-8': steadyClients(8),
  'clients-32': steadyClients(32),
  'clients-128': steadyClients(128),
};
