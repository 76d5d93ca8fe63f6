import type { LexicalShardSource, LexicalSource } from '../../src/engine/lexical/lexical-index.ts';
import { LexicalFile, type TermPostings } from '../../src/engine/reference/lexical/lexical-file.ts';

/** A block of a term's postings; the rows are those of the index and rise from block to block. */
export interface RowPostings {
  readonly firstRow: number;
  /** Rows of the shard that begins at `firstRow`. */
  readonly rows: Uint32Array;
  readonly tfs: Uint32Array;
}

interface OpenedShard extends LexicalShardSource {
  readonly file: LexicalFile;
}

/** The terms of all shards of an inverted index, in the order of their UTF-8 bytes. */
export class LexicalShards {
  readonly #shards: OpenedShard[] = [];

  /** @throws TrawlError INDEX_FILE_MISSING, INDEX_FILE_FOREIGN. */
  constructor({ shards }: LexicalSource) {
    try {
      for (const shard of shards) this.#shards.push({ ...shard, file: new LexicalFile(shard.path) });
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Length code of each row of the index. */
  *lengthCodes(): Generator<{ row: number; code: number; path: string }, void> {
    for (const { path, firstRow, file } of this.#shards) {
      for (const [row, code] of file.lengthCodes.entries()) yield { row: firstRow + row, code, path };
    }
  }

  /** Every term once, with the postings of all shards, those of deleted rows included. */
  *terms(): Generator<{ term: Uint8Array; postings: () => Generator<RowPostings, void> }, void> {
    const cursors = this.#shards.map(({ firstRow, file }) => {
      const terms = file.terms();
      return { firstRow, terms, next: termOf(terms.next()) };
    });
    for (;;) {
      let least: Uint8Array | undefined;
      for (const { next } of cursors) {
        if (next !== undefined && (least === undefined || Buffer.compare(next.term, least) < 0)) least = next.term;
      }
      if (least === undefined) return;
      const term = least;
      const having = cursors.filter(({ next }) => next !== undefined && Buffer.compare(next.term, term) === 0);
      yield {
        term,
        *postings() {
          for (const { firstRow, next } of having) {
            for (const { rows, tfs } of next!.postings()) yield { firstRow, rows, tfs };
          }
        },
      };
      for (const cursor of having) cursor.next = termOf(cursor.terms.next());
    }
  }

  close(): void {
    for (const { file } of this.#shards) file.close();
  }
}

function termOf({ value }: IteratorResult<TermPostings, void>): TermPostings | undefined {
  return value ?? undefined;
}
