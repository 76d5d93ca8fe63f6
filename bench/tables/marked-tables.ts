/** A table in a Markdown page between the lines `<!-- table NAME of FILE -->` and `<!-- end of table -->`. */
export interface MarkedTable {
  readonly name: string;
  /** The file with its figures, relative to the repository. */
  readonly file: string;
  /** What is between the markers, without blank lines around it. */
  readonly content: string;
}

const MARKED = /<!-- table ([a-z0-9-]+) of (\S+) -->\n([\s\S]*?)<!-- end of table -->/g;

export function markedTables(page: string): MarkedTable[] {
  return [...page.matchAll(MARKED)].map(([, name, file, content]) => ({
    name: name!,
    file: file!,
    content: content!.trim(),
  }));
}

/** The page with the content of each marked table replaced. */
export function withTables(page: string, contentOf: (name: string, file: string) => string): string {
  return page.replaceAll(
    MARKED,
    (_whole, name: string, file: string) =>
      `<!-- table ${name} of ${file} -->\n\n${contentOf(name, file)}\n\n<!-- end of table -->`,
  );
}
