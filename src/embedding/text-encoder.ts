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

/**
 * What the limit took from a text. `tail`: its end, which for a question with its query is the query's. `question`: the
 * question's end, or all of it. `question-and-tail`: the whole question, and the end of the query too.
 */
export const CUTS = ['nothing', 'tail', 'question', 'question-and-tail'] as const;
export type Cut = (typeof CUTS)[number];

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
      /** `nothing` where `truncated` is false. */
      readonly cut: Cut;
    }
  | { readonly ok: false; readonly error: TrawlError };

/** The text that is embedded for an input, before the limit in tokens: prefix, question, separator, query. */
export function composeText(input: EncoderInput, prefix: string, separator: string | null): string {
  const pair = questionAndQuery(input);
  if (pair === null) return prefix + (typeof input === 'string' ? input : input.query);
  return separator === null
    ? `${prefix}${pair.question} ${pair.query}`
    : `${prefix}${pair.question} ${separator} ${pair.query}`;
}

/** The input where it has a question to speak of, else null. */
export function questionAndQuery(input: EncoderInput): QuestionAndQuery | null {
  return typeof input === 'string' || input.question.trim() === '' ? null : input;
}

export interface EncodeResult {
  /** Row-major, texts × dimension, in the order of the texts. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** Milliseconds in which no worker had any of the texts; absent where nothing ever waits. */
  readonly waitedMs?: number;
}

export interface EncodeOptions {
  readonly kind: TextKind;
  readonly truncate?: TruncateSide;
  /** Aborting drops texts that have not begun and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

/** What an encoder has to do and has done. */
export interface EncoderLoad {
  /** Texts that no worker has begun. */
  readonly waitingTexts: number;
  /** Expected milliseconds until those are done; 0 before anything was measured. */
  readonly expectedWaitMs: number;
  /** Texts encoded since the start. */
  readonly texts: number;
  /** Texts given up before a worker had them, because their caller went away. */
  readonly droppedTexts: number;
  /** Messages to workers, each with texts of one call or of several. */
  readonly chunks: number;
}

/**
 * Texts in, vectors out. Tokenising is inside. On the CPU a text gives the same bits in any company
 * (`identity.batchInvariant`). Work runs in worker threads; the calling thread is never blocked by it.
 */
export interface TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  /** What stands between a question and its query, a space on each side; null where one space does. */
  readonly separator: string | null;
  /** What keeps every text from its vector; absent while texts are encoded. */
  readonly failure?: TrawlError | undefined;
  /** Absent where nothing ever waits. */
  readonly load?: EncoderLoad;
  encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult>;
  /** Waits for running texts, then ends the workers. Safe to call twice. */
  close(): Promise<void>;
}
