import { documentFields } from '../../index/passages/document-fields.ts';
import type { FoundPassage } from '../../search/calls/lookup-calls.ts';
import type { RecordedOpening } from '../recording/recorded-opening.ts';
import type { WholeDocument } from './whole-document.ts';

/** The opening of passages by a name that a client gave. */
export function openingOf(opened: string, found: readonly FoundPassage[]): RecordedOpening {
  const passages = found.map(({ row, source, document }) => ({
    row: source?.row ?? row,
    index: source?.index,
    idJson: documentFields(document).idJson,
  }));
  return { opened, passages };
}

/** The opening of a document by a name that a client gave; undefined: nothing has that name. */
export function openingOfDocument(opened: string, document: WholeDocument | undefined): RecordedOpening {
  const { rows, idsJson } = document ?? { rows: [], idsJson: [] };
  return { opened, passages: rows.map((row, i) => ({ row, idJson: idsJson[i] })) };
}
