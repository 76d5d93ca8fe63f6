/** What begins a heading and a list item in KILT's knowledge source. */
export const SECTION_MARKER = 'Section::::';
export const BULLET_MARKER = 'BULLET::::';

/** Between the levels of a heading: `History > Typographic variants`. */
const LEVELS = ' > ';

/** `Section::::History.:Typographic variants.` → `History > Typographic variants`. */
export function sectionOf(piece: string): string {
  return piece.slice(SECTION_MARKER.length).trim().replace(/\.$/, '').replaceAll('.:', LEVELS);
}

/** Which section a place of a text is in. Headings are in ascending order; before the first the section is ''. */
export class SectionMap {
  readonly #starts: number[] = [];
  readonly #names: string[] = [];

  add(start: number, name: string): void {
    this.#starts.push(start);
    this.#names.push(name);
  }

  at(place: number): string {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= place) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? '' : this.#names[low - 1]!;
  }
}
