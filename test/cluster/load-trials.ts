import assert from 'node:assert/strict';
import { loadavg } from 'node:os';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClusterEvent, ClusterRate, LoadFigures } from './cluster-figures.ts';
import { type Addresses, ask } from './dialect-requests.ts';
import { WatchedLoad, type WatchedRequest } from './watched-load.ts';

/** How long a rate is measured. */
const RATE_MS = 10_000;
/** After this the store has to answer again. */
const RECOVERY_MS = 240_000;
/** Without a refusal for this long, all copies are back. */
const QUIET_MS = 15_000;
/** Clients that send the requests of all dialects beside the others. */
const DIALECT_CLIENTS = 2;

/** Something that is done to a cluster under load. */
export interface Fault {
  readonly name: string;
  begin(): Promise<void>;
  lasts(): Promise<void>;
  end(): Promise<void>;
  /** Resolves when the cluster is whole again. */
  untilWhole(): Promise<void>;
}

export interface FaultLoad {
  readonly server: Addresses;
  readonly searches: readonly WatchedRequest[];
  /** Requests of all dialects; undefined: none. */
  readonly dialects?: readonly WatchedRequest[];
  /** Clients that send searches. */
  readonly clients: number;
}

/** Loads in turn, with the figures of all. Each asserts that no reply was wrong. */
export class LoadTrials {
  readonly rates: ClusterRate[] = [];
  readonly events: ClusterEvent[] = [];

  /** Measures the rate of a cluster without a fault, which refuses nothing. */
  async rate(
    t: TestContext,
    name: string,
    {
      server,
      requests,
      clients,
      queries = 1,
    }: {
      readonly server: Addresses;
      readonly requests: readonly WatchedRequest[];
      readonly clients: number;
      /** Of each request. */
      readonly queries?: number;
    },
  ): Promise<LoadFigures> {
    const load = new WatchedLoad(server, requests, () => queries);
    const measured = await load.during(clients, () => pause(RATE_MS));
    assert.deepEqual(load.wrong, []);
    assert.equal(measured.refused, 0, load.lastRefusal);
    this.rates.push({ name, load: loadavg()[0]!, ...measured });
    t.diagnostic(`${name}: ${measured.queriesPerS.toFixed(1)} queries/s, slowest ${measured.slowestMs.toFixed(0)} ms`);
    return measured;
  }

  /** Puts a fault into a cluster under load, and waits until it is whole and answers again. */
  async withFault(
    t: TestContext,
    { name, begin, lasts, end, untilWhole }: Fault,
    { server, searches, dialects, clients }: FaultLoad,
  ): Promise<ClusterEvent> {
    const load = new WatchedLoad(server, searches);
    const others = new WatchedLoad(server, dialects ?? []);
    let answersMeanwhile = 0;
    const fault = async (): Promise<void> => {
      await begin();
      const from = performance.now();
      await lasts();
      answersMeanwhile = load.answersBetween(from, performance.now());
      await end();
      await untilWhole();
      await untilAnswered(server, searches);
    };
    let ofDialects: LoadFigures | undefined;
    const measured = await load.during(clients, async () => {
      if (dialects === undefined) await fault();
      else ofDialects = await others.during(DIALECT_CLIENTS, fault);
    });
    const event: ClusterEvent = {
      name,
      load: loadavg()[0]!,
      ...measured,
      answersMeanwhile,
      dialects:
        ofDialects === undefined
          ? null
          : { answers: ofDialects.answers, refused: ofDialects.refused, wrong: ofDialects.wrong },
    };
    this.events.push(event);
    t.diagnostic(JSON.stringify(event));
    assert.deepEqual([...load.wrong, ...others.wrong], []);
    return event;
  }
}

/**
 * Waits until every search of a span of time is answered. A query node of Milvus finds no rows for seconds after it has loaded them, so that
 * one answer does not show that all copies are back.
 */
export async function untilAnswered(server: Addresses, searches: readonly WatchedRequest[]): Promise<void> {
  const end = performance.now() + RECOVERY_MS;
  let since = performance.now();
  for (let i = 0; performance.now() - since < QUIET_MS; i++) {
    const { status, text } = await ask(server, searches[i % searches.length]!.request);
    if (status !== 200) since = performance.now();
    assert.ok(performance.now() < end, `not every search is answered ${RECOVERY_MS} ms after: ${text}`);
    await pause(100);
  }
}
