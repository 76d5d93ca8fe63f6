import { bug, deserializeError } from '../../base/errors.ts';
import type { PassageReply, PassageRequest } from './passage-protocol.ts';
import { DocumentsRead, type FindRead } from './passage-read.ts';

interface Part {
  readonly read: DocumentsRead;
  readonly places: readonly number[];
}

/**
 * Takes at most `maxRows` rows from the reads at the head of the queue, an equal share of each. All read documents, or all read
 * ids. Removes these reads from the queue, so that a read is in one message at a time and cannot block several readers. Undefined if none of them has work.
 */
export function takeBatch(waiting: (DocumentsRead | FindRead)[], maxRows: number): DocumentBatch | undefined {
  const share = Math.max(1, Math.floor(maxRows / waiting.length));
  const parts: Part[] = [];
  let left = maxRows;
  while (left > 0 && waiting[0] instanceof DocumentsRead) {
    // A retry is sent alone, so that only the read that kills readers fails.
    const isRetry = waiting[0].deaths > 0;
    if (isRetry && parts.length > 0) break;
    if (parts.length > 0 && waiting[0].what !== parts[0]!.read.what) break;
    const read = waiting.shift() as DocumentsRead;
    if (!read.hasWork) continue;
    // The last read may take the rest.
    const places = read.take(waiting.length === 0 ? left : Math.min(left, share));
    left -= places.length;
    parts.push({ read, places });
    if (isRetry) break;
  }
  return parts.length === 0 ? undefined : new DocumentBatch(parts);
}

/** The rows of one message to a reader. */
class DocumentBatch {
  readonly #parts: readonly Part[];

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  get reads(): readonly DocumentsRead[] {
    return this.#parts.map(({ read }) => read);
  }

  message(budgetMs: number): PassageRequest {
    const rows = this.#parts.flatMap(({ read, places }) => places.map((place) => read.row(place)));
    return { type: 'get', what: this.#parts[0]!.read.what, rows: Float64Array.from(rows), budgetMs };
  }

  /** Passes the documents to their reads. Returns an error if the reply violates the protocol. */
  accept(reply: PassageReply): Error | undefined {
    if (reply.type === 'failed') {
      for (const { read } of this.#parts) read.fail(deserializeError(reply.error));
      return undefined;
    }
    if (reply.type === 'found') return bug('a passage reader answered get with rows');
    const failures = new Map(reply.failures.map(({ index, error }) => [index, error]));
    let at = 0;
    for (const { read, places } of this.#parts) {
      for (const place of places) {
        const failure = failures.size === 0 ? undefined : failures.get(at);
        if (failure === undefined) read.accept(place, reply.documents[at]!);
        else read.fail(deserializeError(failure));
        at++;
      }
    }
    return undefined;
  }

  /** Puts the rows back to be read again, after their reader died. */
  requeue(): void {
    for (const { read, places } of this.#parts) read.requeue(places);
  }
}
