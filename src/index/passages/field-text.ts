import { documentFields } from './document-fields.ts';

/** The text of a field of a stored document; empty if the document does not have the field. */
export function fieldText(document: string, field: 'contents' | 'title' | 'text'): string {
  const { contents, title, text } = documentFields(document);
  return field === 'contents' ? contents : field === 'title' ? (title ?? '') : text;
}
