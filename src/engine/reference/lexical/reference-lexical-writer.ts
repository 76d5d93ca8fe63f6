import { setImmediate } from 'node:timers/promises';
import { throwIfCancelled } from '../../../base/abort.ts';
import { TrawlError } from '../../../base/errors.ts';
import { type Analyse, analyser } from '../../lexical/analysis/analysers.ts';
import { lengthCode } from '../../lexical/bm25.ts';
import { type EngineAnalyser, engineAnalyser } from '../../lexical/lexical-settings.ts';
import type { LexicalWriter } from '../../lexical/lexical-writer.ts';
import type { LexicalFileCounts } from '../../native/lexical-functions.ts';
import { MemoryPostings } from './memory-postings.ts';
import { ReferenceLexicalFileWriter } from './reference-lexical-file-writer.ts';

/** Units of text or postings that are worked on in one time slice of the event loop. */
const SLICE = 65_536;
/** Largest number of postings of a file, which need about 20 bytes of memory each. */
const MAX_POSTINGS = 2 ** 26;
/** Largest number of terms of a file; a Map holds no more than 2^24 entries. */
const MAX_TERMS = 16_000_000;

interface ReferenceLimits {
  readonly postings?: number;
  readonly terms?: number;
}

/**
 * Writes an inverted index in plain TypeScript, with the same bytes as the native engine. It holds all postings in memory, so
 * it refuses more than 67,108,864 postings or 16,000,000 terms.
 */
export class ReferenceLexicalWriter implements LexicalWriter {
  readonly #path: string;
  readonly #name: EngineAnalyser;
  readonly #analyse: Analyse;
  readonly #limits: Required<ReferenceLimits>;
  readonly #postings = new MemoryPostings();
  #isBusy = false;

  /** @param limits smaller limits, for tests. */
  constructor(
    path: string,
    name: EngineAnalyser,
    { postings = MAX_POSTINGS, terms = MAX_TERMS }: ReferenceLimits = {},
  ) {
    this.#path = path;
    this.#name = name;
    this.#analyse = analyser(name);
    this.#limits = { postings, terms };
  }

  append(texts: readonly string[], signal?: AbortSignal): Promise<void> {
    return this.#alone(async () => {
      let units = 0;
      for (const text of texts) {
        throwIfCancelled(signal);
        // Through UTF-8, as in the native engine, which replaces lone surrogates.
        const terms = this.#analyse(Buffer.from(text).toString());
        this.#postings.addRow(terms, lengthCode(terms.length));
        this.#checkLimits();
        units += text.length;
        if (units < SLICE) continue;
        units = 0;
        await setImmediate();
      }
    });
  }

  finish(signal?: AbortSignal): Promise<LexicalFileCounts> {
    return this.#alone(async () => {
      throwIfCancelled(signal);
      const { lengthCodes, tokens } = this.#postings;
      const analyser = engineAnalyser(this.#name);
      const file = await ReferenceLexicalFileWriter.create(this.#path, { analyser, lengthCodes, tokens });
      try {
        let written = 0;
        for (const { term, postings } of this.#postings.byTerm()) {
          await file.addTerm(term, postings);
          written += postings.rows.length;
          if (written < SLICE) continue;
          written = 0;
          await setImmediate();
          throwIfCancelled(signal);
        }
        return await file.finish();
      } finally {
        await file.close();
      }
    });
  }

  abandon(): void {}

  #checkLimits(): void {
    const { count, terms } = this.#postings;
    if (count <= this.#limits.postings && terms <= this.#limits.terms) return;
    const [what, limit] =
      count > this.#limits.postings ? ['postings', this.#limits.postings] : ['terms', this.#limits.terms];
    throw new TrawlError(
      'ENGINE_MISSING',
      `${this.#path}: the inverted index has more than ${limit.toLocaleString('en')} ${what}, which only the native engine can write. ` +
        'Install a C++ compiler and run npm run build, or build the index in smaller shards (--shard-rows).',
      { details: { path: this.#path, limit } },
    );
  }

  async #alone<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isBusy) throw new TypeError('The writer is still busy with the call before.');
    this.#isBusy = true;
    try {
      return await call();
    } finally {
      this.#isBusy = false;
    }
  }
}
