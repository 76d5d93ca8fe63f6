import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Perturbed } from '../search/calls/perturbed.ts';
import type { QueryOutcome } from '../search/calls/query-outcome.ts';
import type { Retriever } from '../search/retriever.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { PerturbingRetriever } from './perturbation/perturbing-retriever.ts';
import { RequestPerturbation } from './perturbation/request-perturbation.ts';
import { PERTURBATIONS, type PerturbationName } from './perturbation/settings.ts';
import { readOrigins } from './recording/read-origins.ts';
import type { ServerConfig } from './server-config.ts';

/** The header of a reply that says how its answers were perturbed: `drop-gold;0;3, delay`, or `none`. */
const PERTURBED_HEADER = 'x-trawl-perturbed';
/** Positions of queries that it names for each perturbation. */
const MAX_NAMED = 100;

declare module 'fastify' {
  interface FastifyRequest {
    /** What is done to the request on purpose; null if its address does not perturb, or before a retriever was made for it. */
    perturbation: PerturbedRequest | null;
  }
}

/** The perturbation of a request, and what its reply says of it. */
class PerturbedRequest {
  readonly perturbation: RequestPerturbation;
  /** Positions of queries by perturbation; empty for one of the whole request. */
  readonly #positions = new Map<PerturbationName, number[]>();
  readonly #metrics: Pick<ServerMetrics, 'perturbed'>;
  /** Searches of the request that were noted. */
  #searches = 0;

  constructor(
    request: FastifyRequest,
    {
      perturbation,
      metrics,
      record,
    }: Required<PerturbOptions> & { perturbation: NonNullable<ServerConfig['perturbation']> },
  ) {
    this.#metrics = metrics;
    const parameters = request.query as Readonly<Record<string, string | string[] | undefined>>;
    const { 'x-trawl-trajectory': trajectory = '', 'x-trawl-turn': turn = '' } = request.headers;
    this.perturbation = new RequestPerturbation({
      perturbation,
      caller: JSON.stringify([trajectory, turn]),
      asked: (queries) => readOrigins({ body: record, headers: request.headers, parameters }, queries).origins,
      onPerturbed: (name) => this.#add(name),
    });
  }

  /** Notes what the answers of a search say, by the position of each query, or of the search if it has one query without a position. */
  note(answers: readonly (Perturbed | undefined)[], positions?: readonly number[]): void {
    const first = this.#searches;
    this.#searches += answers.length;
    for (const [i, perturbed] of answers.entries()) {
      const position = positions?.[i] ?? first + i;
      if ((perturbed?.droppedGold ?? 0) > 0) this.#add('drop-gold', position);
      if ((perturbed?.distractors ?? 0) > 0) this.#add('distractors', position);
    }
  }

  /** The value of the header. */
  get header(): string {
    const named = PERTURBATIONS.flatMap((name) => {
      const positions = this.#positions.get(name);
      if (positions === undefined) return [];
      const more = positions.length - MAX_NAMED;
      return [[name, ...positions.slice(0, MAX_NAMED), ...(more > 0 ? [`and-${more}-more`] : [])].join(';')];
    });
    return named.length === 0 ? 'none' : named.join(', ');
  }

  #add(name: PerturbationName, position?: number): void {
    const positions = this.#positions.get(name) ?? [];
    this.#positions.set(name, positions);
    if (position !== undefined) positions.push(position);
    this.#metrics.perturbed(name);
  }
}

/** The settings of an address, as its health checks and the list of its indexes say them. */
export const PerturbationFacts = Type.Object(
  {
    rates: Type.Object(Object.fromEntries(PERTURBATIONS.map((name) => [name, Type.Number()])), {
      description: 'The shares of queries (drop-gold, distractors) and of requests (delay, fail) that are affected.',
    }),
    seed: Type.Integer(),
    distractors: Type.Integer({ description: 'Distractors in an affected answer.' }),
    delayMs: Type.Integer({ description: 'How long an affected request is held back, in milliseconds.' }),
  },
  { description: 'What the server does to searches on purpose (--perturb). Absent if it does nothing.' },
);

export function perturbationFact({ perturbation }: Pick<ServerConfig, 'perturbation'>): {
  perturbation?: Static<typeof PerturbationFacts>;
} {
  if (perturbation === null) return {};
  const { rates, ...settings } = perturbation.settings;
  return { perturbation: { rates: { ...rates }, ...settings } };
}

/** What perturbation needs to know of a request. */
interface PerturbOptions {
  readonly metrics: Pick<ServerMetrics, 'perturbed'>;
  /** The field `record` of the body, which may name the questions of its queries. */
  readonly record?: unknown;
}

/** Says in each reply of a search how it was perturbed. */
export function installPerturbation(app: FastifyInstance): void {
  app.decorateRequest('perturbation', null);
  app.addHook('onSend', async ({ perturbation }, reply) => {
    if (perturbation?.perturbation.searched === true) reply.header(PERTURBED_HEADER, perturbation.header);
  });
}

/**
 * The retriever with the perturbations of the address, if it has any. All retrievers of a request share what concerns the request.
 *
 * @param shown hits that the client gets per query, if the dialect says so before it searches.
 */
export function perturbing(
  request: FastifyRequest,
  retriever: Retriever,
  { perturbation, metrics, maxHits }: Pick<ServerConfig, 'perturbation' | 'metrics' | 'maxHits'>,
  { shown, record }: { readonly shown?: number; readonly record?: unknown } = {},
): Retriever {
  if (perturbation === null) return retriever;
  const counts = metrics ?? { perturbed: () => undefined };
  request.perturbation ??= new PerturbedRequest(request, { perturbation, metrics: counts, record });
  return new PerturbingRetriever(retriever, request.perturbation.perturbation, { shown, maxHits });
}

/** What the outcomes of a search say about perturbations. */
export function perturbedOf(outcomes: readonly QueryOutcome[]): (Perturbed | undefined)[] {
  return outcomes.map((outcome) => (outcome.ok ? outcome.perturbed : undefined));
}
