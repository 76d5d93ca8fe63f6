import { BULLET_MARKER, SECTION_MARKER, sectionOf } from './kilt-markers.ts';
import type { SourceDocument } from './source-document.ts';

export interface Paragraph {
  readonly text: string;
  readonly section: string;
}

/**
 * The paragraphs of a document. Strips KILT's list item markers and turns its headings into the `section` of the paragraphs
 * that follow. Omits a first paragraph that only repeats the title.
 */
export function paragraphsOf({ pieces, title, isKilt }: SourceDocument): Paragraph[] {
  const paragraphs: Paragraph[] = [];
  let section = '';
  for (const piece of isKilt ? pieces : pieces.flatMap((text) => text.split(/\r\n|\r|\n/))) {
    if (isKilt && piece.startsWith(SECTION_MARKER)) {
      section = sectionOf(piece);
      continue;
    }
    const text = (isKilt && piece.startsWith(BULLET_MARKER) ? piece.slice(BULLET_MARKER.length) : piece).trim();
    if (text === '' || (paragraphs.length === 0 && text === title?.trim())) continue;
    paragraphs.push({ text, section });
  }
  return paragraphs;
}
