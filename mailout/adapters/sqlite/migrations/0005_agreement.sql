-- Since 0.1.0: as on Supabase, a value is found in any case in every script, and one that shows nothing is none.
DROP VIEW read_people_by_attribute;

-- Whoever has an attribute, once for each, with its value as text. A value counts if it has a character that a letter
-- would show: not white space, a control character (45 is the hyphen of a range) or a mark of variables.
CREATE VIEW read_people_by_attribute AS
SELECT s.*, had.key AS attribute,
       CASE WHEN had.type IN ('true', 'false') THEN had.type
            WHEN had.value GLOB '*[^ -~]*' THEN mailout_fold(CAST(had.value AS TEXT))
            ELSE lower(CAST(had.value AS TEXT)) END AS attribute_value
FROM read_subscribers s, json_each(s.attributes) had
WHERE had.value GLOB '*[^' || char(1, 45, 32, 127, 45, 160, 5760, 8192, 45, 8202, 8232, 8233, 8239, 8287, 12288, 57344, 57345) || ']*';
