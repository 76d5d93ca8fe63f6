import type { SourceDocument } from './source-document.ts';

/** Prefixes of headings and list items in KILT's knowledge source. */
export const SECTION_MARKER = 'Section::::';
export const BULLET_MARKER = 'BULLET::::';

/** Separator of the levels of a heading: `History > Typographic variants`. */
const LEVEL_SEPARATOR = ' > ';

/** `Section::::History.:Typographic variants.` → `History > Typographic variants`. */
export function sectionOf(piece: string): string {
  return piece.slice(SECTION_MARKER.length).trim().replace(/\.$/, '').replaceAll('.:', LEVEL_SEPARATOR);
}

/** Maps offsets in a text to sections. */
export class SectionMap {
  readonly #starts: number[] = [];
  readonly #names: string[] = [];

  /** Sections must be added in ascending order of `start`. */
  add(start: number, name: string): void {
    this.#starts.push(start);
    this.#names.push(name);
  }

  /** The section at an offset; '' before the first. */
  at(offset: number): string {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= offset) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? '' : this.#names[low - 1]!;
  }
}

interface Paragraph {
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
