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
