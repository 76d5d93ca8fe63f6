import type { TextEncoder } from '../embedding/text-encoder.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import type { RowBitmap } from '../vector-index/row-bitmap.ts';
import type { VectorIndex } from '../vector-index/vector-index.ts';
import type { AnswerCache } from './answer-cache.ts';
import { BoundedRetriever, DEFAULT_MAX_WAITING_BYTES } from './bounded-retriever.ts';
import { QueuedIndex } from './queued-index.ts';
import type { Retriever, RetrieverInfo } from './retriever.ts';
import { SearchRetriever } from './search-retriever.ts';
import { SharingRetriever } from './sharing-retriever.ts';

/** How the calls of a retriever meet. */
export interface MeetingOptions {
  /** Finished answers, kept for queries that come again; may be shared by several retrievers. Absent: none are kept. */
  readonly answerCache?: AnswerCache | undefined;
  /** Whether equal queries that are under way at the same time are computed once; default: yes. */
  readonly singleFlight?: boolean;
  /**
   * Bytes of the queries that wait and of their expected answers, beyond which calls are refused with OVERLOADED;
   * default: 512 MiB. Too little refuses bursts that would be answered in seconds, too much lets them fill the memory.
   */
  readonly maxWaitingBytes?: number;
}

export interface RetrieverParts {
  readonly encoder: TextEncoder;
  readonly index: VectorIndex;
  readonly passages: PassageStore;
  /** The rows that have not been removed, where some have. */
  readonly alive?: RowBitmap | undefined;
}

/** A retriever from its parts, in which calls meet: equal queries, bounds, and a queue in front of the engine. */
export function assembleRetriever(
  info: RetrieverInfo,
  { encoder, index, passages, alive }: RetrieverParts,
  { answerCache, singleFlight = true, maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES }: MeetingOptions = {},
): Retriever {
  const queued = new QueuedIndex(index, { moreAreComing: () => (encoder.load?.waitingTexts ?? 0) > 0 });
  const direct = new SearchRetriever(info, encoder, queued, passages, alive);
  // Calls that wait for an equal query of another hold their own queries and get as large an answer.
  return new BoundedRetriever(new SharingRetriever(direct, { answerCache, singleFlight }), maxWaitingBytes);
}
