import type { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';

export const TEXT_KINDS = ['query', 'passage'] as const;
export type TextKind = (typeof TEXT_KINDS)[number];

/**
 * A text, or an agent's sub-query with the question it serves. The parts stay apart until truncation, because the limit
 * may have to cut the one or the other.
 */
export type EncoderInput = string | QuestionAndQuery;

export interface QuestionAndQuery {
  readonly question: string;
  readonly query: string;
}

/**
 * What is cut when a text has more tokens than the model takes. `tail` keeps the head, as every peer does; `question`
 * shortens the question of a `QuestionAndQuery` so that the current query survives (for a plain text it means `tail`).
 */
export const TRUNCATE_SIDES = ['tail', 'question'] as const;
export type TruncateSide = (typeof TRUNCATE_SIDES)[number];

/** What happened to one text. A failed text has a zero row in `vectors`, which must not be searched. */
export type EncodeOutcome =
  | {
      readonly ok: true;
      /** Tokens embedded, special tokens included. */
      readonly tokens: number;
      /**
       * True when the text had more tokens than the limit and was cut, or more characters than are looked at (200,000 of
       * a text, a question or a query): so no text, however little of it makes tokens, occupies a worker for long.
       */
      readonly truncated: boolean;
    }
  | { readonly ok: false; readonly error: TrawlError };

export interface EncodeResult {
  /** Row-major, texts × dimension, in the order of the texts. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
}

export interface EncodeOptions {
  readonly kind: TextKind;
  readonly truncate?: TruncateSide;
  /** Aborting drops texts that have not begun and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

/**
 * Texts in, vectors out. Tokenising is inside. On the CPU a text gives the same bits in any company
 * (`identity.batchInvariant`). Work runs in worker threads; the calling thread is never blocked by it.
 */
export interface TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult>;
  /** Waits for running texts, then ends the workers. Safe to call twice. */
  close(): Promise<void>;
}
