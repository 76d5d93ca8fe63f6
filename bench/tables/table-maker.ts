/** Makes the lines of a table from the JSON file that its marker names. */
export type TableMaker<Result> = (result: Result) => readonly (readonly string[])[];

/** The line below the header: texts to the left, figures to the right. */
export const rule = (columns: number, texts = 1): string[] =>
  Array.from({ length: columns }, (_, i) => (i < texts ? '---' : '---:'));
