import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../helpers/seeded-random.ts';
import { expectedAnswers } from '../soak/expected-answers.ts';
import { GoodTally, goodClient, type MakeRequest, retrieveRequests } from '../soak/good-client.ts';
import { type SoakServer, type SoakServerOptions, startSoakServer } from '../soak/soak-server.ts';

export interface TrialOptions {
  readonly index: string;
  /** An index with other answers to the same queries. */
  readonly otherIndex: string;
  /** A scratch folder for links, copies and logs. */
  readonly folder: string;
  /** Shortest duration of the load in each trial. */
  readonly seconds: number;
  /** Number of connections to open and close. */
  readonly connections: number;
  /** Also tests clients that send too slowly, which the server disconnects only after a minute. */
  readonly patient: boolean;
  /** Called now and then with a line for people. */
  onProgress?(line: string): void;
}

/** What was done and seen, by name, in the order of the report. */
export type Counts = Readonly<Record<string, number | string>>;

/** The result of a trial, which failed if `faults` has an entry. */
export interface Found {
  readonly counts: Counts;
  readonly faults: Readonly<Record<string, number>>;
}

export interface TrialResult extends Found {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Why the trial was skipped, or the error that ended it. */
  readonly reason?: string;
}

/** A trial of a server. It throws `Skip` if this machine cannot run it. */
export interface Trial {
  readonly name: string;
  run(options: TrialOptions): Promise<Found>;
}

export class Skip extends Error {}

/** Runs trials one after another. Errors of a trial are part of its result. */
export async function runTrials(
  trials: readonly Trial[],
  options: TrialOptions,
  onResult: (result: TrialResult) => void = () => undefined,
): Promise<TrialResult[]> {
  const results: TrialResult[] = [];
  for (const trial of trials) {
    const result = await resultOf(trial, options);
    results.push(result);
    onResult(result);
  }
  return results;
}

async function resultOf({ name, run }: Trial, options: TrialOptions): Promise<TrialResult> {
  try {
    const { counts, faults } = await run(options);
    return { name, outcome: Object.keys(faults).length === 0 ? 'passed' : 'failed', counts, faults };
  } catch (error) {
    const outcome = error instanceof Skip ? 'skipped' : 'failed';
    const reason = error instanceof Skip ? error.message : String((error as Error).stack ?? error);
    return { name, outcome, counts: {}, faults: {}, reason };
  }
}

/** Counts faults by name. */
export class Faults {
  readonly counts: Record<string, number> = {};

  add(what: string, count = 1): void {
    this.counts[what] = (this.counts[what] ?? 0) + count;
  }
}

export interface LoadOptions {
  readonly server?: SoakServerOptions;
  readonly queries: readonly string[];
  /** Default: POST /retrieve, with the answers that the index gives without a server. */
  readonly makeRequest?: MakeRequest;
  /** Whether the server may refuse requests with 503 and Retry-After. Default: a refusal is a fault. */
  readonly mayRefuse?: boolean;
  /** Runs beside the clients. The load lasts until it has ended, and at least `seconds`. */
  during(server: SoakServer, stopped: () => boolean): Promise<Found>;
  /** Runs after the last answer, before the server is stopped. */
  after?(server: SoakServer, tally: GoodTally): Promise<Found>;
}

export const LOAD_CLIENTS = 8;
const SIZES = [1, 1, 2, 3, 16];
const PROGRESS_MS = 10_000;

/** Starts a server under the load of good clients, whose every answer is checked, while `during` does something to it. */
export async function underLoad(index: string, options: TrialOptions, load: LoadOptions): Promise<Found> {
  const { queries, during, after } = load;
  const makeRequest = load.makeRequest ?? retrieveRequests(await expectedAnswers(index, queries));
  const server = await startSoakServer(index, load.server ?? {});
  const tally = new GoodTally();
  const until = performance.now() + options.seconds * 1000;
  let over = false;
  const stopped = (): boolean => over || performance.now() >= until || !server.alive;
  const progress = setInterval(() => {
    const left = Math.max(0, Math.round((until - performance.now()) / 1000));
    options.onProgress?.(`${tally.answered} answers, ${tally.faults} faults, ${left} s left`);
  }, PROGRESS_MS);
  const clients = Array.from({ length: LOAD_CLIENTS }, (_, i) =>
    goodClient({
      port: server.port,
      makeRequest,
      queries,
      tally,
      random: seededRandom(i + 1),
      sizes: SIZES,
      stopped: () => over || !server.alive,
    }),
  );
  let found: Found;
  let afterwards: Found = { counts: {}, faults: {} };
  try {
    found = await during(server, stopped);
    while (!stopped()) await sleep(50);
    over = true;
    await Promise.all(clients);
    if (server.alive && after !== undefined) afterwards = await after(server, tally);
  } finally {
    over = true;
    clearInterval(progress);
    if (!server.alive) tally.fault('the server died');
    const exit = await server.stop();
    if (exit !== 0) tally.fault(`exit ${exit}`);
  }
  if (tally.answered === 0) tally.fault('no answer');
  if (load.mayRefuse !== true && tally.refused > 0) tally.fault('refused with 503');
  return {
    counts: { answers: tally.answered, 'wrong or failed': tally.faults, ...found.counts, ...afterwards.counts },
    faults: { ...tally.wrong, ...found.faults, ...afterwards.faults },
  };
}

/** Posts a JSON body, by default {}; returns the status and the body of the answer. */
export async function post(url: string, body: object = {}): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

export const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
