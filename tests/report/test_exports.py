"""The registry entry and the model card: what their readers need, and nothing invented."""

from __future__ import annotations

import jsonschema
import pytest
import yaml
from huggingface_hub import ModelCard

from dpglm.report.exports import Unknown, lines

from . import facts

TEXT, NUMBER = {"type": "string", "minLength": 1}, {"type": "number"}


def group(required, **fields):
    fields = {name: TEXT if kind is None else kind for name, kind in fields.items()}
    return {
        "type": "object", "additionalProperties": False, "properties": fields, "required": required.split(),
    }  # fmt: skip


def one_of(*names):
    return {"enum": list(names)}


# Names, types and choices of the fields of the registry's public schema (opendp/deployments-registry-data).
FIELDS = group(
    "url_slug deployment",
    url_slug=None,
    deployment=group(
        "basic administrative",
        basic=group(
            "name data_curators description intended_use data_product_type data_product_region "
            "publication_date",
            name=None,
            data_curators={
                "type": "array",
                "minItems": 1,
                "items": group(
                    "data_curator_name data_curator_type",
                    data_curator_name=None,
                    data_curator_type=one_of("Government", "Industry", "Nonprofit"),
                ),
            },
            description=None,
            intended_use=None,
            data_product_type=one_of(
                "Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                "Interactive API", "SQL queries",
            ),
            data_product_region=None,
            data_product_sector=one_of(
                "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"
            ),
            publication_date={"type": "string", "format": "date"},
        ),
        dp_variant=group(
            "",
            variant_name=one_of(
                "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"
            ),
            data_domain=None,
            unprotected_quantities=None,
        ),
        privacy_loss=group(
            "",
            privacy_unit=None,
            privacy_unit_details=None,
            number_of_privacy_units={"type": "integer"},
            privacy_parameters=group("", epsilon=NUMBER, delta={"type": ["number", "string"]}, rho=NUMBER),
            privacy_parameters_details=None,
        ),
        deployment_model=group(
            "",
            model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            model_name_details=None,
            trust_assumptions=None,
            actors=None,
            release_type=one_of("One release", "Many releases"),
            release_type_details=None,
            data_source_type=one_of("Static", "Dynamic"),
            data_source_type_details=None,
            access_type=one_of("Interactive", "Non-interactive"),
            access_type_details=None,
        ),
        implementation=group(
            "",
            preprocessing_and_hyperparameter_tuning=None,
            mechanisms=None,
            composition=None,
            post_processing=None,
            justification=None,
            utility=None,
            additional_information=None,
        ),
        administrative=group(
            "status registry_authors tier",
            evidence_sources={"type": "object"},
            status=one_of("Converted", "Draft", "Pending", "Changes Required", "Approved"),
            registry_authors={"type": "array", "items": TEXT, "minItems": 1},
            tier=one_of(1, 2, 3),
        ),
    ),
)  # fmt: skip
REGISTRY = jsonschema.Draft7Validator(FIELDS, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
PRIVATE = sorted(set(facts.MODELS) - {"seeded", "no noise"})


@pytest.mark.parametrize("kind", PRIVATE)
def test_the_entry_has_the_fields_of_the_registry_and_all_that_can_be_derived(kind):
    text = facts.report(kind).registry_entry()
    entry = yaml.safe_load(text)
    assert [error.message for error in REGISTRY.iter_errors(entry)] == []
    stated, deployed = facts.report(kind).facts, entry["deployment"]
    loss = deployed["privacy_loss"]
    assert loss["privacy_parameters"]["epsilon"] == stated["privacy"]["epsilon"]
    assert loss["privacy_parameters"]["delta"] == stated["privacy"]["delta"]
    assert loss["privacy_parameters"].get("rho") == stated["measures"]["rho"]
    assert loss["number_of_privacy_units"] == stated["records"]
    for line in stated["releases"]:
        assert line["query"] in deployed["implementation"]["mechanisms"]
    # every field of the schema is filled or marked, but for those that a person has to add
    left_out = {"data_product_sector", "evidence_sources"}
    for name, part in FIELDS["properties"]["deployment"]["properties"].items():
        fields = set(part["properties"]) - left_out
        assert fields == set(deployed[name]), name
    unknown = [line.split(":")[0].strip(" -") for line in text.splitlines() if "# TODO" in line]
    assert set(unknown) >= {"url_slug", "intended_use", "publication_date", "actors", "justification"}
    assert not {"epsilon", "delta", "mechanisms", "composition", "data_domain"} & set(unknown)


def test_the_fields_tell_a_wrong_entry():
    entry = yaml.safe_load(facts.report("pipeline").registry_entry())
    entry["deployment"]["privacy_loss"]["privacy_parameters"]["mu"] = 1.0
    entry["deployment"]["basic"]["publication_date"] = "TODO"
    entry["deployment"]["basic"]["data_product_type"] = "model"
    del entry["deployment"]["administrative"]["tier"]
    assert len(list(REGISTRY.iter_errors(entry))) == 4


@pytest.mark.parametrize("kind", ["seeded", "no noise"])
def test_a_model_that_is_not_private_has_no_entry_and_its_card_says_so(kind):
    with pytest.raises(ValueError, match="not private"):
        facts.report(kind).registry_entry()
    card = ModelCard(facts.report(kind).model_card())
    assert "NOT PRIVATE" in card.text and "privacy" not in card.data.to_dict()


@pytest.mark.parametrize("kind", PRIVATE)
def test_the_card_is_accepted_by_its_reader_and_has_the_promise(kind):
    card = ModelCard(facts.report(kind).model_card())
    stated, header = facts.report(kind).facts, card.data.to_dict()
    assert header["library_name"] == "dpglm" and header["pipeline_tag"] == f"tabular-{stated['kind']}"
    assert header["privacy"]["epsilon"] == stated["privacy"]["epsilon"]
    for part in ("## Privacy", "## Limitations", stated["digest"], "right guesses", "## Intended use"):
        assert part in card.text
    assert "<script" not in card.text and card.data.eval_results is None


def test_the_card_states_scores_as_results():
    report = facts.model("intervals").report(evaluation=facts.scores())
    card = ModelCard(report.model_card())
    found = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert found["accuracy"] == facts.scores()["accuracy"].value and set(found) >= {"accuracy", "auc"}
    assert "accuracy" in yaml.safe_load(report.registry_entry())["deployment"]["implementation"]["utility"]


def test_yaml_reads_back_as_what_was_written():
    values = {
        "text": 'with "quotes", # and: colons\nand lines', "small": 1e-07, "large": 1e300, "whole": 3,
        "none": None, "flag": True, "list": ["a", 1.5], "nested": {"inner": [{"x": 1, "y": ["z"]}, {"x": 2}]},
    }  # fmt: skip
    assert yaml.safe_load("\n".join(lines(values))) == values
    (marked,) = lines({"date": Unknown("1900-01-01")})
    assert "# TODO" in marked and yaml.safe_load(marked) == {"date": "1900-01-01"}
