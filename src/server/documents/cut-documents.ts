import type { TimeSlice } from '../../base/time-slice.ts';
import type { CutText } from '../../search/calls/model-calls.ts';
import type { Models } from '../../search/retriever.ts';
import { NO_TIMINGS } from '../../search/timings.ts';
import { cutCharacters, cutWords } from './cut-text.ts';
import type { FoundDocuments, WholeDocument } from './whole-document.ts';

export const CUT_UNITS = ['words', 'characters', 'tokens'] as const;

/** The most words, characters or tokens of a document. */
export interface DocumentCut {
  readonly unit: (typeof CUT_UNITS)[number];
  /** At least 1. */
  readonly most: number;
}

/**
 * The same documents with the beginnings of their texts.
 *
 * @throws TrawlError NOT_SUPPORTED for tokens, if the index has no tokenizer.
 */
export async function cutDocuments(
  retriever: Models,
  documents: readonly WholeDocument[],
  { unit, most }: DocumentCut,
  { signal, slice }: { readonly signal: AbortSignal; readonly slice: TimeSlice },
): Promise<FoundDocuments> {
  if (unit === 'tokens') {
    const { texts, timings } = await retriever.cut({ texts: documents.map(({ text }) => text), tokens: most, signal });
    return { documents: documents.map((document, i) => withText(document, texts[i]!)), timings };
  }
  const cut: WholeDocument[] = [];
  for (const document of documents) {
    cut.push(withText(document, unit === 'words' ? cutWords(document.text, most) : cutCharacters(document.text, most)));
    if (slice.isOver) await slice.yield();
  }
  return { documents: cut, timings: NO_TIMINGS };
}

function withText(document: WholeDocument, { text, isCut }: CutText): WholeDocument {
  return { ...document, text, isCut: isCut || document.isCut };
}
