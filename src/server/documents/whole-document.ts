import type { TimeSlice } from '../../base/time-slice.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import { titleForms } from '../../index/passages/title-forms.ts';
import type { FoundPassage } from '../../search/calls/lookup-calls.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { addTimings, type StageTimings } from '../../search/timings.ts';
import { idInUrl, passageName } from '../passage-name.ts';
import { cutCharacters } from './cut-text.ts';
import { type Lookup, lookupsOfDocument, titleKeys } from './document-lookup.ts';
import { findPassages } from './find-passages.ts';
import { joinPassages, orderedPassages } from './join-passages.ts';

/** Longest text of a document, in UTF-16 units. It bounds the memory of a reply. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

export interface WholeDocument {
  /** The id of the document, or else that of its first passage, or its URL, title or row. */
  readonly id: string;
  /** The column `url`, or `trawl://INDEX/ID`. */
  readonly url: string;
  readonly title: string;
  /** Without the title. */
  readonly text: string;
  /** Whether the text ends before the document does. */
  readonly isCut: boolean;
  /** Rows of the joined passages. */
  readonly rows: readonly number[];
  /** Their ids as JSON text. */
  readonly idsJson: readonly (string | undefined)[];
}

export interface Documents {
  /** One per place; undefined if no passage was found. */
  readonly documents: readonly (WholeDocument | undefined)[];
  readonly timings: StageTimings;
}

/** The document of each place. */
export interface FoundDocuments extends Documents {
  readonly documents: readonly WholeDocument[];
}

interface Options {
  /** Most passages of a document. Of a longer document, the first ones in row order are joined. */
  readonly limit: number;
  readonly signal: AbortSignal;
  readonly slice: TimeSlice;
}

/** The documents that passages belong to. */
export async function documentsOfPassages(
  retriever: Retriever,
  passages: readonly FoundPassage[],
  { limit, signal, slice }: Options,
): Promise<FoundDocuments> {
  const lookups = passages.map(({ row, document }) => lookupsOfDocument(documentFields(document), row));
  const { found, timings } = await findPassages(retriever, lookups, limit, signal);
  const documents: WholeDocument[] = [];
  for (const each of found) {
    documents.push(joinedDocument(each, retriever.info, limit));
    if (slice.isOver) await slice.yield();
  }
  return { documents, timings };
}

/**
 * Documents by id or URL. An id is that of a document, else of a passage, whose document it gives. A URL is compared as it is; if no
 * passage has it, it may be the title in a wiki's URL, or a title.
 */
export async function documentsByName(
  retriever: Retriever,
  names: readonly ({ readonly id: string } | { readonly url: string })[],
  options: Options,
): Promise<Documents> {
  const lookups = names.map((name) => ('id' in name ? lookupsOfId(name.id) : lookupsOfUrl(name.url, retriever.info)));
  const first = await findPassages(retriever, lookups, 1, options.signal);
  const passages = first.found.flatMap(([passage]) => (passage === undefined ? [] : [passage]));
  const whole = await documentsOfPassages(retriever, passages, options);
  let next = 0;
  const documents = first.found.map(({ length }) => (length === 0 ? undefined : whole.documents[next++]));
  return { documents, timings: addTimings(first.timings, whole.timings) };
}

/** An id of `WholeDocument`. */
function lookupsOfId(id: string): readonly Lookup[] {
  const row = /^row (\d+)$/.exec(id)?.[1];
  return [
    { by: 'document', keys: [id] },
    { by: 'id', keys: [id] },
    { by: 'url', keys: [id] },
    { by: 'title', keys: titleForms(id) },
    ...(row === undefined ? [] : [{ by: 'row', keys: [row] } as const]),
  ];
}

function lookupsOfUrl(url: string, { index }: RetrieverInfo): readonly Lookup[] {
  const id = idInUrl(url, index);
  if (id !== url) return lookupsOfId(id);
  return [
    { by: 'url', keys: [url] },
    { by: 'title', keys: titleKeys(url) },
  ];
}

/** @param found passages in row order, at least one. */
function joinedDocument(found: readonly FoundPassage[], { index }: RetrieverInfo, limit: number): WholeDocument {
  const passages = orderedPassages(found.map(({ row, document }) => ({ row, fields: documentFields(document) })));
  const { row, fields } = passages[0]!;
  const { id, title, url } = passageName(index, row, fields);
  const cut = cutCharacters(joinPassages(passages.map((each) => each.fields)), MAX_CHARACTERS);
  return {
    id: fields.document ?? id,
    url,
    title,
    text: cut.text,
    isCut: cut.isCut || found.length === limit,
    rows: passages.map((each) => each.row),
    idsJson: passages.map((each) => each.fields.idJson),
  };
}
