import { documentFields } from '../../index/passages/document-fields.ts';

/** `_id` of a passage: its id as text, or its row for a passage without one, as `row 7`. */
export function documentId(document: string, row: number): string {
  return documentFields(document).id ?? `row ${row}`;
}

/** The row that `documentId` names; undefined for the id of a passage. */
export function rowOfId(id: string): string | undefined {
  return /^row (\d{1,15})$/.exec(id)?.[1];
}
