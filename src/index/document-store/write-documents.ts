import { randomBytes } from 'node:crypto';
import { asTrawlError } from '../../base/errors.ts';
import { writeFailure } from '../../base/system/write-failure.ts';
import { checkDocument } from './check-document.ts';
import type { DocumentStore } from './document-store.ts';
import type { IndexDefinition } from './index-files.ts';
import { type Failure, illegalArgument, type Operation, type Outcome, type WriteItem } from './operations.ts';
import { idProblems, type RequestedOperation, validationFailure } from './parse-bulk.ts';

/** An index that can be written. */
export interface OpenStore {
  readonly definition: IndexDefinition;
  readonly store: DocumentStore;
}

/** The indexes that operations other than deletions name and that are neither open nor refused. */
export function missingIndexes(
  requested: readonly RequestedOperation[],
  stores: ReadonlyMap<string, OpenStore>,
  refusals: Readonly<Record<string, Failure>>,
): readonly string[] {
  const named = requested.flatMap(({ action, index, failure }) =>
    action === 'delete' || action === 'update' || failure !== undefined ? [] : [index],
  );
  return [...new Set(named)].filter((index) => !stores.has(index) && !Object.hasOwn(refusals, index));
}

/**
 * Does the operations of a request, in their order. The operations on one index are one transaction, so a full disk refuses all of them;
 * operations that are refused for another reason leave the others.
 *
 * @returns the dimension of the first vector for each index that does not know its own: nothing is done then.
 */
export function writeDocuments(
  requested: readonly RequestedOperation[],
  stores: ReadonlyMap<string, OpenStore>,
  refusals: Readonly<Record<string, Failure>>,
): readonly WriteItem[] | { readonly dimensions: ReadonlyMap<string, number> } {
  const dimensions = new Map<string, number>();
  const checked = requested.map((operation) => check(operation, stores, refusals, dimensions));
  if (dimensions.size > 0) return { dimensions };
  const outcomes = new Array<Outcome>(requested.length);
  const placesOf = new Map<string, number[]>();
  for (const [place, operation] of checked.entries()) {
    if ('failure' in operation) {
      outcomes[place] = operation;
      continue;
    }
    const places = placesOf.get(operation.index) ?? [];
    places.push(place);
    placesOf.set(operation.index, places);
  }
  for (const [index, places] of placesOf) {
    const operations = places.map((place) => checked[place] as Operation);
    for (const [i, outcome] of apply(stores.get(index)!.store, operations).entries()) outcomes[places[i]!] = outcome;
  }
  return requested.map(({ action, index, id }, i): WriteItem => {
    const operation = checked[i]!;
    return { action, index, id: 'failure' in operation ? (id ?? null) : operation.id, outcome: outcomes[i]! };
  });
}

function apply(store: DocumentStore, operations: readonly Operation[]): readonly Outcome[] {
  try {
    return store.apply(operations);
  } catch (error) {
    const { code, message } = asTrawlError(writeFailure(error, 'The folder of --writable'));
    if (code === 'INTERNAL') throw error;
    // What Elasticsearch answers when its disk is nearly full.
    const reason = `${message} None of the operations of this request on this index were done.`;
    const failure: Failure = { status: 429, type: 'cluster_block_exception', reason };
    return operations.map(() => ({ failure }));
  }
}

function check(
  requested: RequestedOperation,
  stores: ReadonlyMap<string, OpenStore>,
  refusals: Readonly<Record<string, Failure>>,
  dimensions: Map<string, number>,
): Operation | { readonly failure: Failure } {
  const { action, index, id, source, failure } = requested;
  if (failure !== undefined) return { failure };
  const refusal = Object.hasOwn(refusals, index) ? refusals[index] : undefined;
  if (refusal !== undefined) return { failure: refusal };
  const open = stores.get(index);
  if (open === undefined) return { failure: notFound(index) };
  if (action === 'update') return { failure: illegalArgument('[update] is not supported; index the whole document') };
  const wrongId = idFailure(requested);
  if (wrongId !== undefined) return { failure: wrongId };
  if (action === 'delete') return { action, index, id: id! };
  const document = checkDocument(source ?? '', open.definition);
  if ('failure' in document) return document;
  const { vector } = open.definition;
  if (vector !== undefined && vector.dimension === undefined && !dimensions.has(index) && document.dimension > 0) {
    dimensions.set(index, document.dimension);
  }
  return { action, index, id: id ?? randomBytes(15).toString('base64url'), source: document.source };
}

function idFailure({ action, id }: RequestedOperation): Failure | undefined {
  const problems = idProblems({ action, id });
  if (problems.length > 0) return validationFailure(problems);
  if (id === '') return illegalArgument('if _id is specified it must not be empty');
  return id !== undefined && /\p{Surrogate}/u.test(id)
    ? illegalArgument('an id must be valid Unicode text')
    : undefined;
}

function notFound(index: string): Failure {
  return { status: 404, type: 'index_not_found_exception', reason: `no such index [${index.slice(0, 100)}]` };
}
